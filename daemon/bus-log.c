/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.freedesktop.LogControl1, for systemctl service-log-level. Set() of its
 * properties is caught before sd-bus sees it: sd-bus wants the answer at once,
 * and whether the sender is root is known only later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus-internal.h"
#include "cleanup.h"
#include "log.h"

#define LOG_PATH "/org/freedesktop/LogControl1"
#define LOG_INTERFACE "org.freedesktop.LogControl1"
#define PROPERTIES "org.freedesktop.DBus.Properties"

/* syslog's words and the nearest level that mthpd has. */
static const struct {
	const char *word;
	enum config_log_level level;
} levels[] = {
	{"err", LOG_LEVEL_ERR},
	{"warning", LOG_LEVEL_WARNING},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
	{"emerg", LOG_LEVEL_ERR},
	{"alert", LOG_LEVEL_ERR},
	{"crit", LOG_LEVEL_ERR},
	{"notice", LOG_LEVEL_INFO},
};

static const char *target(void)
{
	return getenv("JOURNAL_STREAM") ? "journal" : "console";
}

static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const char *value = "mthpd";

	(void)bus, (void)path, (void)interface, (void)userdata, (void)ret_error;
	if (!strcmp(property, "LogTarget"))
		value = target();
	else if (!strcmp(property, "LogLevel"))
		for (size_t i = ELEMENTSOF(levels); i-- > 0;)
			if (levels[i].level == log_get_level())
				value = levels[i].word;
	return sd_bus_message_append(reply, "s", value);
}

/* Never called: on_set() comes before. */
static int refuse(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *value, void *userdata, sd_bus_error *ret_error)
{
	(void)bus, (void)path, (void)interface, (void)property, (void)value, (void)userdata;
	return sd_bus_error_set(ret_error, SD_BUS_ERROR_ACCESS_DENIED, "Only root may do this");
}

static int do_set(struct bus *b, sd_bus_message *m, struct bus_hold *hold)
{
	const char *interface, *property = "", *value;
	int r;

	(void)b;
	(void)hold;
	sd_bus_message_rewind(m, true);
	r = sd_bus_message_read(m, "ssv", &interface, &property, "s", &value);
	if (r < 0)
		return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS, "%s is a string", property);
	if (!strcmp(property, "LogTarget")) {
		if (strcmp(value, target()) != 0 && strcmp(value, "auto") != 0)
			return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NOT_SUPPORTED,
				"The log goes to %s, and nowhere else", target());
		return sd_bus_reply_method_return(m, "");
	}
	for (size_t i = 0; i < ELEMENTSOF(levels); i++)
		if (!strcmp(levels[i].word, value)) {
			log_set_level(levels[i].level);
			log_info("log level is %s now, until the next reload", value);
			return sd_bus_reply_method_return(m, "");
		}
	return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_INVALID_ARGS,
		"A log level is one of err, warning, info, debug");
}

static int on_set(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	const char *path = sd_bus_message_get_path(m), *interface, *property;
	bool ours;

	if (!sd_bus_message_is_method_call(m, PROPERTIES, "Set") || !path || strcmp(path, LOG_PATH) != 0 ||
		!sd_bus_message_has_signature(m, "ssv"))
		return 0;
	ours = sd_bus_message_read(m, "ss", &interface, &property) >= 0 && !strcmp(interface, LOG_INTERFACE) &&
	       (!strcmp(property, "LogLevel") || !strcmp(property, "LogTarget"));
	sd_bus_message_rewind(m, true);
	return ours ? bus_order_ask(userdata, m, NULL, do_set, ret_error) : 0;
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_property, refuse, 0, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_property, refuse, 0, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_PROPERTY("SyslogIdentifier", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_VTABLE_END,
};

int bus_log_add(struct bus *b)
{
	int r = sd_bus_add_object_vtable(b->bus, NULL, LOG_PATH, LOG_INTERFACE, vtable, b);

	return r < 0 ? r : sd_bus_add_filter(b->bus, NULL, on_set, b);
}
