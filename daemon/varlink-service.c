/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-service.h"

#include <errno.h>
#include <string.h>

static const char service_description[] =
	"# What every varlink service answers\n"
	"interface " VARLINK_SERVICE "\n"
	"\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string, reason: ?string)\n"
	"error PermissionDenied (method: ?string, reason: ?string)\n"
	"error ExpectedMore (method: ?string)\n";

static int get_info(
	const struct varlink_info *info, const json_t *parameters, json_t **ret_parameters)
{
	if (json_object_size(parameters) > 0) {
		*ret_parameters = json_pack("{s:s,s:s}", "parameter",
			json_object_iter_key(json_object_iter((json_t *)parameters)), "reason",
			"GetInfo has no parameters");
		return -EINVAL;
	}
	*ret_parameters = json_pack("{s:s,s:s,s:s,s:s,s:[s,s]}", "vendor", info->vendor, "product",
		info->product, "version", info->version, "url", info->url, "interfaces",
		VARLINK_SERVICE, info->interface);
	return *ret_parameters ? 0 : -ENOMEM;
}

static int get_description(const struct varlink_info *info, const json_t *parameters,
	json_t **ret_parameters, const char **ret_error)
{
	const char *name = json_string_value(json_object_get(parameters, "interface"));
	const char *text = NULL;

	if (!name || json_object_size(parameters) != 1) {
		*ret_parameters = json_pack("{s:s,s:s}", "parameter", "interface", "reason",
			"must be the name of an interface, and the only parameter");
		return -EINVAL;
	}
	if (!strcmp(name, VARLINK_SERVICE))
		text = service_description;
	else if (!strcmp(name, info->interface))
		text = info->interface_description;
	if (!text) {
		*ret_error = VARLINK_SERVICE ".InterfaceNotFound";
		*ret_parameters = json_pack("{s:s}", "interface", name);
		return -ENOENT;
	}
	*ret_parameters = json_pack("{s:s}", "description", text);
	return *ret_parameters ? 0 : -ENOMEM;
}

/* Length of the interface's part of a method's name. */
static size_t interface_len(const char *method)
{
	const char *dot = strrchr(method, '.');

	return dot ? (size_t)(dot - method) : 0;
}

static int not_found(const struct varlink_info *info, const char *method, json_t **ret_parameters,
	const char **ret_error)
{
	size_t n = interface_len(method);

	if (n == 0 || (n == strlen(VARLINK_SERVICE) && !strncmp(method, VARLINK_SERVICE, n)) ||
		(n == strlen(info->interface) && !strncmp(method, info->interface, n))) {
		*ret_error = VARLINK_SERVICE ".MethodNotFound";
		*ret_parameters = json_pack("{s:s}", "method", method);
	} else {
		*ret_error = VARLINK_SERVICE ".InterfaceNotFound";
		*ret_parameters = json_pack("{s:s%}", "interface", method, n);
	}
	return -ENOENT;
}

int varlink_service_call(const struct varlink_info *info, const struct varlink_request *r,
	json_t **ret_parameters, const char **ret_error)
{
	if (!strcmp(r->method, VARLINK_SERVICE ".GetInfo"))
		return get_info(info, r->parameters, ret_parameters);
	if (!strcmp(r->method, VARLINK_SERVICE ".GetInterfaceDescription"))
		return get_description(info, r->parameters, ret_parameters, ret_error);
	return not_found(info, r->method, ret_parameters, ret_error);
}
