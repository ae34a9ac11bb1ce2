/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.mthpd1.Manager: the members of org.mthpd1(5), each one call of the engine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus-internal.h"
#include "cleanup.h"
#include "history.h"

/* ---- properties ---- */

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	(void)bus, (void)path, (void)interface, (void)property, (void)userdata, (void)ret_error;
	return sd_bus_message_append(reply, "s", MTHPD_VERSION);
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const char *state = json_string_value(json_object_get(bus_summary(userdata), "state"));

	(void)bus, (void)path, (void)interface, (void)property, (void)ret_error;
	return state ? sd_bus_message_append(reply, "s", state) : -ENOMEM;
}

static int get_degraded(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const json_t *list = json_object_get(bus_summary(userdata), "degraded");
	int r = sd_bus_message_open_container(reply, 'a', "s");

	(void)bus, (void)path, (void)interface, (void)property, (void)ret_error;
	for (size_t i = 0; i < json_array_size(list) && r >= 0; i++)
		r = sd_bus_message_append(reply, "s", json_string_value(json_array_get(list, i)));
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static const char *text_at(const json_t *row, size_t i)
{
	return json_string_value(json_array_get(row, i));
}

static int get_sizes(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	json_t *sizes = bus_sizes(bus_summary(userdata));
	int r = sd_bus_message_open_container(reply, 'a', "(tsssss)");

	(void)bus, (void)path, (void)interface, (void)property, (void)ret_error;
	for (size_t i = 0; i < json_array_size(sizes) && r >= 0; i++) {
		const json_t *row = json_array_get(sizes, i);

		r = sd_bus_message_append(reply, "(tsssss)", (uint64_t)json_integer_value(json_array_get(row, 0)),
			text_at(row, 1), text_at(row, 2), text_at(row, 3), text_at(row, 4), text_at(row, 5));
	}
	json_decref(sizes);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static const struct {
	const char *property, *key;
} counters[] = {
	{"Decisions", "decisions"},
	{"Writes", "writes"},
	{"WriteErrors", "write_errors"},
	{"ForeignChanges", "foreign_changes"},
	{"CgroupsSeen", "cgroups_seen"},
	{"Wakeups", "wakeups"},
	{"CPUUSec", "cpu_usec"},
};

static int get_counter(sd_bus *bus, const char *path, const char *interface, const char *property,
	sd_bus_message *reply, void *userdata, sd_bus_error *ret_error)
{
	const json_t *all = json_object_get(bus_summary(userdata), "counters");

	(void)bus, (void)path, (void)interface, (void)ret_error;
	for (size_t i = 0; i < ELEMENTSOF(counters); i++)
		if (!strcmp(counters[i].property, property))
			return sd_bus_message_append(reply, "t",
				(uint64_t)json_integer_value(json_object_get(all, counters[i].key)));
	return -ENOENT;
}

/* ---- questions ---- */

static int reply_json(sd_bus_message *m, json_t *value)
{
	_cleanup_free_ char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	return text ? sd_bus_reply_method_return(m, "s", text) : -ENOMEM;
}

static int get_status(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;

	(void)ret_error;
	return reply_json(m, engine_status(b->engine));
}

/* Everything that a report about a fault needs. */
static json_t *dump(struct engine *e)
{
	json_t *differences, *facts;
	char *text;
	bool ok;
	int r = engine_explain(e, NULL, &text, &facts);

	if (r < 0)
		return NULL;
	json_decref(facts);
	differences = engine_verify(e, &ok);
	facts = json_pack("{s:o, s:o*, s:o, s:o}", "status", engine_status(e), "explain", json_from_bytes(text),
		"differences", differences, "decisions", engine_history(e, HISTORY_MAX));
	free(text);
	return facts;
}

static int dump_by_fd(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	json_t *all = dump(b->engine);
	_cleanup_close_ int fd = memfd_create("mthpd-dump", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	(void)ret_error;
	if (fd < 0)
		r = -errno;
	else if (!all || json_dumpfd(all, fd, JSON_COMPACT) < 0)
		r = -ENOMEM;
	json_decref(all);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	return sd_bus_reply_method_return(m, "h", fd);
}

static int explain(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	const char *cgroup;
	json_t *facts, *clean;
	char *text;
	int r = sd_bus_message_read(m, "s", &cgroup);

	if (r < 0)
		return r;
	r = engine_explain(b->engine, *cgroup ? cgroup : NULL, &text, &facts);
	if (r == -ENOENT)
		return sd_bus_error_setf(ret_error, "org.mthpd1.NotFound", "There is no group %s", cgroup);
	if (r < 0)
		return r;
	clean = json_from_bytes(text);
	r = sd_bus_reply_method_return(m, "s", json_string_value(clean));
	json_decref(clean);
	json_decref(facts);
	free(text);
	return r;
}

static int history(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	uint32_t n;
	int r = sd_bus_message_read(m, "u", &n);

	(void)ret_error;
	return r < 0 ? r : reply_json(m, json_pack("{s:o}", "decisions", engine_history(b->engine, n)));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static int verify(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	struct bus *b = userdata;
	sd_bus_message *reply = NULL;
	bool ok;
	json_t *differences = engine_verify(b->engine, &ok);
	int r = sd_bus_message_new_method_return(m, &reply);

	(void)ret_error;
	if (r >= 0)
		r = sd_bus_message_append(reply, "b", (int)ok);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sss)");
	for (size_t i = 0; i < json_array_size(differences) && r >= 0; i++) {
		const json_t *d = json_array_get(differences, i);

		r = sd_bus_message_append(reply, "(sss)", text_of(d, "path"), text_of(d, "wanted"),
			text_of(d, "actual"));
	}
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	if (r >= 0)
		r = sd_bus_send(b->bus, reply, NULL);
	sd_bus_message_unref(reply);
	json_decref(differences);
	return r < 0 ? r : 1;
}

/* ---- orders ---- */

static int do_reload(struct bus *b, sd_bus_message *m, struct bus_hold *hold)
{
	char why[ENGINE_WHY_LEN];
	json_t *text;
	int r;

	(void)hold;
	if (engine_reload(b->engine, why) == 0)
		return sd_bus_reply_method_return(m, "");
	/* A file's name may be any bytes, an error's text may not. */
	text = json_from_bytes(why);
	r = sd_bus_reply_method_errorf(m, "org.mthpd1.BadConfiguration", "%s; the old one stands",
		text ? json_string_value(text) : "The configuration has faults");
	json_decref(text);
	return r;
}

static int reload(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	return bus_order_ask(userdata, m, NULL, do_reload, ret_error);
}

static int do_restore(struct bus *b, sd_bus_message *m, struct bus_hold *hold)
{
	int failures = engine_restore(b->engine);

	(void)hold;
	if (failures < 0)
		return failures;
	if (failures > 0)
		return sd_bus_reply_method_errorf(m, "org.mthpd1.RestoreIncomplete",
			"%d values could not be put back (see the log)", failures);
	return sd_bus_reply_method_return(m, "");
}

static int restore(sd_bus_message *m, void *userdata, sd_bus_error *ret_error)
{
	return bus_order_ask(userdata, m, NULL, do_restore, ret_error);
}

/* UNPRIVILEGED: sd-bus would ask for the sender's user and wait for the answer;
 * bus-order.c asks without waiting. */
#define OPEN SD_BUS_VTABLE_UNPRIVILEGED
#define COUNTER(name) SD_BUS_PROPERTY(name, "t", get_counter, 0, 0)

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("DegradedReasons", "as", get_degraded, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Sizes", "a(tsssss)", get_sizes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	COUNTER("Decisions"),
	COUNTER("Writes"),
	COUNTER("WriteErrors"),
	COUNTER("ForeignChanges"),
	COUNTER("CgroupsSeen"),
	COUNTER("Wakeups"),
	COUNTER("CPUUSec"),
	SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", status), get_status, OPEN),
	SD_BUS_METHOD_WITH_ARGS("DumpByFileDescriptor", SD_BUS_NO_ARGS, SD_BUS_RESULT("h", fd), dump_by_fd, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", cgroup), SD_BUS_RESULT("s", text), explain, OPEN),
	SD_BUS_METHOD_WITH_ARGS("History", SD_BUS_ARGS("u", n), SD_BUS_RESULT("s", decisions), history, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Verify", SD_BUS_NO_ARGS, SD_BUS_RESULT("b", ok, "a(sss)", differences), verify,
		OPEN),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, reload, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Hold", SD_BUS_ARGS("s", reason), SD_BUS_RESULT("u", cookie), bus_hold_call, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("u", cookie), SD_BUS_NO_RESULT, bus_release_call, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Restore", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, restore, OPEN),
	SD_BUS_SIGNAL_WITH_ARGS("Decision",
		SD_BUS_ARGS("s", cgroup, "s", knob, "s", old_value, "s", new_value, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("DriftDetected", SD_BUS_ARGS("s", path, "s", expected, "s", found), 0),
	SD_BUS_VTABLE_END,
};

int bus_manager_add(struct bus *b)
{
	return sd_bus_add_object_vtable(b->bus, NULL, BUS_PATH, BUS_INTERFACE, vtable, b);
}
