/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink-wire.h"

#include <errno.h>
#include <string.h>

#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(9))

/* Nesting as jansson will see it: brackets outside of strings. Text that is
 * not JSON may be judged wrongly here, and is refused by the parser then. */
static bool depth_within(const char *buf, size_t len, unsigned max)
{
	unsigned depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = buf[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > max)
				return false;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return true;
}

static const char *syntax_reason(const json_error_t *e)
{
	switch (json_error_code(e)) {
	case json_error_invalid_utf8:
		return "not valid UTF-8";
	case json_error_premature_end_of_input:
		return "the JSON text ends too early";
	case json_error_end_of_input_expected:
		return "there is text after the JSON object";
	case json_error_duplicate_key:
		return "a key stands twice in one object";
	case json_error_numeric_overflow:
		return "a number is out of range";
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "a string holds a NUL character";
	default:
		return "not a JSON object";
	}
}

static bool method_well_formed(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-");

	return n > 0 && n <= VARLINK_METHOD_BYTES_MAX && s[n] == '\0';
}

static int fault(struct varlink_fault *ret, const char *parameter, const char *reason)
{
	*ret = (struct varlink_fault){parameter, reason};
	return -EINVAL;
}

static int take_flag(const char *key, json_t *value, bool *ret, struct varlink_fault *ret_fault)
{
	if (!json_is_boolean(value))
		return fault(ret_fault, key, "must be true or false");
	*ret = json_is_true(value);
	return 0;
}

static int take_key(
	struct varlink_request *r, const char *key, json_t *value, struct varlink_fault *ret_fault)
{
	bool upgrade = false;

	if (!strcmp(key, "method")) {
		if (!json_is_string(value) || !method_well_formed(json_string_value(value)))
			return fault(ret_fault, "method", "must be the full name of a method");
		r->method = json_string_value(value);
		return 0;
	}
	if (!strcmp(key, "parameters")) {
		if (!json_is_object(value) && !json_is_null(value))
			return fault(ret_fault, "parameters", "must be an object");
		r->parameters = json_is_object(value) ? value : NULL;
		return 0;
	}
	if (!strcmp(key, "more"))
		return take_flag("more", value, &r->more, ret_fault);
	if (!strcmp(key, "oneway"))
		return take_flag("oneway", value, &r->oneway, ret_fault);
	if (!strcmp(key, "upgrade")) {
		int e = take_flag("upgrade", value, &upgrade, ret_fault);

		return e < 0 ? e : upgrade ? fault(ret_fault, "upgrade", "is not supported") : 0;
	}
	return fault(ret_fault, "request",
		"unknown key: a call has method, parameters, more, oneway and upgrade");
}

static int check_object(struct varlink_request *r, struct varlink_fault *ret_fault)
{
	const char *key;
	json_t *value;

	json_object_foreach(r->root, key, value)
	{
		int e = take_key(r, key, value, ret_fault);

		if (e < 0)
			return e;
	}
	if (!r->method)
		return fault(ret_fault, "method", "is missing");
	if (r->more && r->oneway)
		return fault(ret_fault, "oneway", "excludes more");
	if (r->parameters)
		return 0;
	/* absent or null: the handlers always get an object */
	r->parameters = json_object();
	if (!r->parameters || json_object_set_new(r->root, "parameters", r->parameters) < 0)
		return -ENOMEM;
	return 0;
}

int varlink_request_parse(
	const char *buf, size_t len, struct varlink_request *ret, struct varlink_fault *ret_fault)
{
	struct varlink_request r = {0};
	json_error_t e;
	int err;

	if (!depth_within(buf, len, VARLINK_DEPTH_MAX))
		return fault(ret_fault, "request", "nested too deeply");
	r.root = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &e);
	if (!r.root && json_error_code(&e) == json_error_out_of_memory)
		return -ENOMEM;
	if (!r.root)
		return fault(ret_fault, "request", syntax_reason(&e));
	if (!json_is_object(r.root))
		err = fault(ret_fault, "request", "not a JSON object");
	else
		err = check_object(&r, ret_fault);
	if (err < 0) {
		json_decref(r.root);
		return err;
	}
	*ret = r;
	return 0;
}

void varlink_request_done(struct varlink_request *r)
{
	json_decref(r->root);
	*r = (struct varlink_request){0};
}

static char *dump(json_t *message, size_t *ret_len)
{
	char *text = message ? json_dumps(message, DUMP_FLAGS) : NULL;

	json_decref(message);
	if (text)
		*ret_len = strlen(text) + 1; /* the string's own NUL ends the message */
	return text;
}

char *varlink_reply_text(json_t *parameters, bool continues, size_t *ret_len)
{
	json_t *p = parameters ? json_incref(parameters) : json_object();
	json_t *message = continues ? json_pack("{s:o,s:b}", "parameters", p, "continues", 1)
				    : json_pack("{s:o}", "parameters", p);

	return dump(message, ret_len);
}

char *varlink_error_text(const char *error, json_t *parameters, size_t *ret_len)
{
	json_t *p = parameters ? json_incref(parameters) : json_object();

	return dump(json_pack("{s:s,s:o}", "error", error, "parameters", p), ret_len);
}
