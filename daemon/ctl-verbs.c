/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "config.h"
#include "ctl-client.h"
#include "ctl-status.h"
#include "ctl-text.h"
#include "ctl.h"
#include "parse.h"

#define JSON_FLAGS (JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY)
#define CGROUP_MOUNT "/sys/fs/cgroup"

static int print_json(const struct ctl *ctl, const json_t *value)
{
	if (json_dumpf(value, ctl->out, JSON_FLAGS) < 0) {
		ctl_complain(ctl, "cannot write the answer");
		return CTL_NO;
	}
	fputc('\n', ctl->out);
	return CTL_OK;
}

/* ---- one call ---- */

int ctl_unreachable(const struct ctl *ctl, int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		ctl_complain(ctl, "%s: %s", ctl->socket, strerror(-err));
		return CTL_NOT_PERMITTED;
	case -ENOENT:
	case -ECONNREFUSED:
		ctl_complain(ctl, "mthpd is not running: nobody listens at %s (%s)", ctl->socket,
			strerror(-err));
		return CTL_UNREACHABLE;
	case -ETIMEDOUT:
		ctl_complain(ctl, "mthpd did not answer within %d s", CTL_TIMEOUT_MSEC / 1000);
		return CTL_UNREACHABLE;
	case -EPROTO:
		ctl_complain(ctl, "%s: what answers there does not speak varlink", ctl->socket);
		return CTL_UNREACHABLE;
	default:
		ctl_complain(ctl, "%s: %s", ctl->socket, strerror(-err));
		return CTL_UNREACHABLE;
	}
}

static bool is_service_error(const char *error, const char *name)
{
	static const char service[] = "org.varlink.service.";

	return !strncmp(error, service, strlen(service)) && !strcmp(error + strlen(service), name);
}

/* What the error carries: its message, or "key: value, key: value". To be freed. */
static char *error_details(const json_t *parameters)
{
	const char *message = json_string_value(json_object_get(parameters, "message"));
	char *text = NULL, buf[CTL_HUMAN_LEN];
	size_t size;
	FILE *f = open_memstream(&text, &size);
	const char *key;
	json_t *value;
	bool first = true;

	if (!f)
		return NULL;
	if (message)
		fputs(message, f);
	json_object_foreach((json_t *)parameters, key, value)
	{
		const char *s = ctl_scalar(value, buf);

		if (!s || message)
			continue;
		fprintf(f, "%s%s: %s", first ? "" : ", ", key, s);
		first = false;
	}
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* The errors of org.mthpd1 as sentences; false for one that is not known here. */
static bool explain_own_error(const struct ctl *ctl, const struct ctl_reply *r, const char *details)
{
	const char *what = json_string_value(json_object_get(r->parameters, "what"));
	json_int_t n = json_integer_value(json_object_get(r->parameters, "failures"));

	if (!strcmp(r->error, "org.mthpd1.NotFound") && what)
		ctl_complain(ctl, "%s: %s%s", ctl->verb, !strcmp(ctl->verb, "explain") ?
			"mthpd watches no group of this name: " : "", what);
	else if (!strcmp(r->error, "org.mthpd1.BadConfiguration") && details)
		ctl_complain(ctl, "%s: the old configuration stands: %s", ctl->verb, details);
	else if (!strcmp(r->error, "org.mthpd1.RestoreIncomplete") && n > 0)
		ctl_complain(ctl, "%s: %" JSON_INTEGER_FORMAT " value%s could not be put back, the log names "
			"them", ctl->verb, n, n == 1 ? "" : "s");
	else if (!strcmp(r->error, "org.mthpd1.TooManyClients"))
		ctl_complain(ctl, "%s: mthpd has as many clients as it takes; try again", ctl->verb);
	else if (!strcmp(r->error, "org.mthpd1.Failed") && details)
		ctl_complain(ctl, "%s: %s", ctl->verb, details);
	else
		return false;
	return true;
}

int ctl_explain_error(const struct ctl *ctl, const char *method, const struct ctl_reply *r)
{
	_cleanup_free_ char *details = NULL;

	if (is_service_error(r->error, "PermissionDenied")) {
		ctl_complain(ctl, "%s: only root may do this", ctl->verb);
		return CTL_NOT_PERMITTED;
	}
	if (is_service_error(r->error, "MethodNotFound") ||
		is_service_error(r->error, "MethodNotImplemented") ||
		is_service_error(r->error, "InterfaceNotFound")) {
		ctl_complain(
			ctl, "%s: this mthpd does not know how (it has no %s)", ctl->verb, method);
		return CTL_NO;
	}
	details = error_details(r->parameters);
	if (!explain_own_error(ctl, r, details))
		ctl_complain(ctl, "%s: %s%s%s", ctl->verb, r->error, details && *details ? ": " : "",
			details ? details : "");
	return CTL_NO;
}

static json_t *string_parameter(
	const struct ctl *ctl, const char *name, const char *value, int *ret_code)
{
	json_t *p = json_pack("{s:s}", name, value);

	if (!p) {
		ctl_complain(ctl, "%s: not valid UTF-8: %s", ctl->verb, value);
		*ret_code = CTL_USAGE;
	}
	return p;
}

/* Calls @method of org.mthpd1 with @parameters (stolen). CTL_OK with *ret
 * filled, or the exit code after a complaint. */
static int call(
	const struct ctl *ctl, const char *method, json_t *parameters, struct ctl_reply *ret)
{
	struct ctl_reply r;
	int err = ctl_call(ctl->socket, method, parameters, CTL_TIMEOUT_MSEC, &r);

	if (err < 0)
		return ctl_unreachable(ctl, err);
	if (r.error) {
		int code = ctl_explain_error(ctl, method, &r);

		ctl_reply_done(&r);
		return code;
	}
	*ret = r;
	return CTL_OK;
}

/* The value that the answer must have; NULL after a complaint. */
static json_t *member(
	const struct ctl *ctl, const struct ctl_reply *r, const char *key, json_type type)
{
	json_t *v = json_object_get(r->parameters, key);

	if (v && (json_typeof(v) == type || (type == JSON_TRUE && json_is_false(v))))
		return v;
	ctl_complain(ctl, "%s: the answer has no usable \"%s\"", ctl->verb, key);
	return NULL;
}

/* ---- verbs that ask ---- */

int ctl_status(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *status;
	int code = call(ctl, "org.mthpd1.GetStatus", NULL, &r);

	if (code != CTL_OK)
		return code;
	status = member(ctl, &r, "status", JSON_OBJECT);
	if (!status)
		code = CTL_NO;
	else if (ctl->json)
		code = print_json(ctl, status);
	else
		ctl_status_print(
			ctl->out, status, ctl->count >= 0 ? (size_t)ctl->count : CTL_STATUS_GROUPS);
	ctl_reply_done(&r);
	return code;
}

/* "key  value" lines; an object within opens a deeper block, a list is one line. */
static void print_features(FILE *f, unsigned indent, json_t *object)
{
	char buf[CTL_HUMAN_LEN];
	const char *key;
	json_t *value, *item;
	size_t i;

	json_object_foreach(object, key, value)
	{
		const char *s = ctl_scalar(value, buf);

		fprintf(f, "%*s", (int)indent, "");
		ctl_put_line(f, key);
		fprintf(f, "%*s", (int)(strlen(key) < 22 ? 22 - strlen(key) : 1), "");
		if (json_is_array(value)) {
			json_array_foreach(value, i, item)
			{
				s = ctl_scalar(item, buf);
				fputs(i ? ", " : "", f);
				ctl_put_line(f, s ? s : "-");
			}
		} else if (!json_is_object(value)) {
			ctl_put_line(f, s ? s : "-");
		}
		fputc('\n', f);
		if (json_is_object(value) && indent < 8)
			print_features(f, indent + 2, value);
	}
}

int ctl_features(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *features;
	int code = call(ctl, "org.mthpd1.Features", NULL, &r);

	if (code != CTL_OK)
		return code;
	features = member(ctl, &r, "features", JSON_OBJECT);
	if (!features)
		code = CTL_NO;
	else if (ctl->json)
		code = print_json(ctl, features);
	else
		print_features(ctl->out, 0, features);
	ctl_reply_done(&r);
	return code;
}

static void print_difference(FILE *f, const json_t *d)
{
	static const char *const keys[] = {"path", "wanted", "actual", "why"};
	static const char *const before[] = {"", ": wanted ", ", actual ", " ("};
	char buf[CTL_HUMAN_LEN];

	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		const char *s = ctl_scalar(json_object_get(d, keys[i]), buf);

		if (!s && i == 3)
			continue;
		fputs(before[i], f);
		ctl_put_line(f, s ? s : "-");
		fputs(i == 3 ? ")" : "", f);
	}
	fputc('\n', f);
}

int ctl_verify(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *ok, *differences;
	int code = call(ctl, "org.mthpd1.Verify", NULL, &r);

	if (code != CTL_OK)
		return code;
	ok = member(ctl, &r, "ok", JSON_TRUE);
	differences = ok ? member(ctl, &r, "differences", JSON_ARRAY) : NULL;
	if (!differences) {
		ctl_reply_done(&r);
		return CTL_NO;
	}
	code = json_is_true(ok) && json_array_size(differences) == 0 ? CTL_OK : CTL_NO;
	if (ctl->json) {
		int printed = print_json(ctl, r.parameters);

		code = printed != CTL_OK ? printed : code;
	} else if (code == CTL_OK) {
		fputs("All values are as wanted.\n", ctl->out);
	}
	for (size_t i = 0; i < json_array_size(differences) && !ctl->json; i++)
		print_difference(ctl->out, json_array_get(differences, i));
	ctl_reply_done(&r);
	return code;
}

static void print_time(FILE *f, const json_t *usec)
{
	time_t sec = (time_t)(json_integer_value(usec) / 1000000);
	char text[64] = "-";
	struct tm tm;

	if (json_is_integer(usec) && localtime_r(&sec, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	fputs(text, f);
}

static void print_decision(FILE *f, const json_t *d)
{
	static const char *const keys[] = {"knob", "old", "new", "reason"};
	static const char *const before[] = {"  ", " ", " -> ", "  "};
	char buf[CTL_HUMAN_LEN], some[CTL_HUMAN_LEN], full[CTL_HUMAN_LEN], room[CTL_HUMAN_LEN];
	const char *cgroup = json_string_value(json_object_get(d, "cgroup"));
	const char *outcome = json_string_value(json_object_get(d, "outcome"));
	_cleanup_free_ char *name = ctl_quote(cgroup ? cgroup : "the whole machine");

	print_time(f, json_object_get(d, "realtime_usec"));
	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		const char *s = ctl_scalar(json_object_get(d, keys[i]), buf);

		fputs(before[i], f);
		ctl_put_line(f, s ? s : "-");
	}
	if (outcome && strcmp(outcome, "written") != 0) {
		fputs("  [", f);
		ctl_put_line(f, outcome);
		fputc(']', f);
	}
	ctl_human_share(json_object_get(d, "some"), some);
	ctl_human_share(json_object_get(d, "full"), full);
	ctl_human_bytes(json_object_get(d, "margin_bytes"), room);
	fprintf(f, "\n    %s: some %s, full %s, margin %s\n", name ? name : "-", some, full, room);
}

int ctl_history(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *decisions;
	json_t *p = ctl->count >= 0 ? json_pack("{s:I}", "n", (json_int_t)ctl->count) : NULL;
	int code = call(ctl, "org.mthpd1.History", p, &r);

	if (code != CTL_OK)
		return code;
	decisions = member(ctl, &r, "decisions", JSON_ARRAY);
	if (!decisions)
		code = CTL_NO;
	else if (ctl->json)
		code = print_json(ctl, r.parameters);
	else if (json_array_size(decisions) == 0 && ctl->count != 0)
		fputs("No decisions yet.\n", ctl->out);
	for (size_t i = 0; i < json_array_size(decisions) && !ctl->json; i++)
		print_decision(ctl->out, json_array_get(decisions, i));
	ctl_reply_done(&r);
	return code;
}

int ctl_metrics(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *text;
	int code = call(ctl, "org.mthpd1.Metrics", NULL, &r);

	if (code != CTL_OK)
		return code;
	text = member(ctl, &r, "text", JSON_STRING);
	if (!text)
		code = CTL_NO;
	else if (ctl->json)
		code = print_json(ctl, r.parameters);
	else if (isatty(fileno(ctl->out)))
		ctl_put_text(ctl->out, json_string_value(text));
	else
		fputs(json_string_value(text), ctl->out);
	ctl_reply_done(&r);
	return code;
}

/* ---- explain ---- */

/* The cgroup of a process, relative to the root, into @path (PATH_MAX). */
static int cgroup_of_pid(const struct ctl *ctl, char *path)
{
	char file[64], buf[16384];
	ssize_t n;
	int r;

	snprintf(file, sizeof(file), "/proc/%s/cgroup", ctl->pid);
	n = parse_read_at(AT_FDCWD, file, buf, sizeof(buf));
	if (n < 0) {
		ctl_complain(ctl, "%s: %s", file,
			n == -ENOENT || n == -ESRCH ? "no such process" : strerror((int)-n));
		return CTL_NO;
	}
	r = parse_proc_cgroup(buf, path, PATH_MAX);
	if (r < 0) {
		ctl_complain(
			ctl, "%s: process %s is in no cgroup of version 2", ctl->verb, ctl->pid);
		return CTL_NO;
	}
	return CTL_OK;
}

/* What people copy from elsewhere, as the daemon calls it. */
static const char *relative_to_root(const char *path)
{
	size_t n = strlen(CGROUP_MOUNT);

	if (!strncmp(path, CGROUP_MOUNT, n) && (path[n] == '/' || path[n] == '\0'))
		path += n;
	return path + strspn(path, "/");
}

/* Explain() for the group of a process, or the nearest group above it that the
 * daemon watches. Cuts @path. */
static int call_upwards(const struct ctl *ctl, char *path, struct ctl_reply *ret)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s", path);
	for (;;) {
		struct ctl_reply r;
		int code = CTL_OK;
		json_t *p = string_parameter(ctl, "cgroup", path, &code);
		int err = p ? ctl_call(ctl->socket, "org.mthpd1.Explain", p, CTL_TIMEOUT_MSEC, &r)
			    : 0;
		char *slash = strrchr(path, '/');

		if (!p)
			return code;
		if (err < 0)
			return ctl_unreachable(ctl, err);
		if (r.error && !strcmp(r.error, "org.mthpd1.NotFound")) {
			ctl_reply_done(&r);
			if (!*path)
				break;
			*(slash ? slash : path) = '\0';
			continue;
		}
		if (r.error) {
			code = ctl_explain_error(ctl, "org.mthpd1.Explain", &r);
			ctl_reply_done(&r);
			return code;
		}
		*ret = r;
		return CTL_OK;
	}
	ctl_complain(ctl, "%s: process %s is in /%s: mthpd watches neither that group nor one above it",
		ctl->verb, ctl->pid, whole);
	return CTL_NO;
}

/* People type the name of a unit: "db.service" for the one group whose path ends
 * in it, into @path (PATH_MAX); left alone where there is none or the status cannot
 * be had. CTL_NO after a complaint that there are several. */
static int find_unit(const struct ctl *ctl, const char *name, char *path)
{
	const char *found = NULL;
	struct ctl_reply r;
	json_t *group;
	size_t i, n = strlen(name);

	if (!n || strchr(name, '/') || ctl_call(ctl->socket, "org.mthpd1.GetStatus", NULL, CTL_TIMEOUT_MSEC, &r) < 0)
		return CTL_OK;
	json_array_foreach(json_object_get(json_object_get(r.parameters, "status"), "cgroups"), i, group)
	{
		const char *p = json_string_value(json_object_get(group, "path"));
		size_t len = p ? strlen(p) : 0;

		if (p && !strcmp(p, name)) {
			found = NULL;
			break;
		}
		if (len <= n || p[len - n - 1] != '/' || strcmp(p + len - n, name) != 0)
			continue;
		if (found) {
			ctl_complain(ctl, "%s: several groups have this name: %s, %s ...", ctl->verb, found, p);
			ctl_reply_done(&r);
			return CTL_NO;
		}
		found = p;
	}
	if (found)
		snprintf(path, PATH_MAX, "%s", found);
	ctl_reply_done(&r);
	return CTL_OK;
}

static int call_explain(const struct ctl *ctl, struct ctl_reply *ret)
{
	char path[PATH_MAX];
	json_t *p = NULL;
	int code = CTL_OK;

	if (ctl->pid) {
		code = cgroup_of_pid(ctl, path);
		if (code != CTL_OK)
			return code;
		memmove(path, path + strspn(path, "/"), strlen(path + strspn(path, "/")) + 1);
		return call_upwards(ctl, path, ret);
	}
	if (ctl->n_args > 0) {
		const char *name = relative_to_root(ctl->args[0]);

		snprintf(path, sizeof(path), "%s", name);
		code = find_unit(ctl, name, path);
		if (code == CTL_OK)
			p = string_parameter(ctl, "cgroup", path, &code);
	}
	return code == CTL_OK ? call(ctl, "org.mthpd1.Explain", p, ret) : code;
}

int ctl_explain(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *text;
	int code = call_explain(ctl, &r);

	if (code != CTL_OK)
		return code;
	text = member(ctl, &r, "text", JSON_STRING);
	if (!text) {
		code = CTL_NO;
	} else if (ctl->json) {
		code = print_json(ctl, r.parameters);
	} else {
		const char *s = json_string_value(text);

		/* In a pipe each sentence stays a line, for grep. */
		if (isatty(fileno(ctl->out)))
			ctl_put_folded(ctl->out, s);
		else
			ctl_put_text(ctl->out, s);
		if (*s && s[strlen(s) - 1] != '\n')
			fputc('\n', ctl->out);
	}
	ctl_reply_done(&r);
	return code;
}

/* ---- verbs that change something ---- */

/* One call whose success is the whole answer. */
static int tell(const struct ctl *ctl, const char *method, json_t *parameters, const char *done)
{
	struct ctl_reply r;
	int code = call(ctl, method, parameters, &r);

	if (code != CTL_OK)
		return code;
	if (ctl->json)
		code = print_json(ctl, r.parameters);
	else
		fprintf(ctl->out, "%s\n", done);
	ctl_reply_done(&r);
	return code;
}

int ctl_reload(const struct ctl *ctl)
{
	return tell(ctl, "org.mthpd1.Reload", NULL, "The configuration was read again.");
}

int ctl_restore(const struct ctl *ctl)
{
	return tell(ctl, "org.mthpd1.Restore", NULL,
		"The start values are back, and held (mthpctl release ends that).");
}

int ctl_hold(const struct ctl *ctl)
{
	struct ctl_reply r;
	json_t *p = NULL, *cookie;
	int code = CTL_OK;

	if (ctl->n_args > 0)
		p = string_parameter(ctl, "reason", ctl->args[0], &code);
	if (code == CTL_OK)
		code = call(ctl, "org.mthpd1.Hold", p, &r);
	if (code != CTL_OK)
		return code;
	cookie = member(ctl, &r, "cookie", JSON_INTEGER);
	if (!cookie)
		code = CTL_NO;
	else if (ctl->json)
		code = print_json(ctl, r.parameters);
	else
		fprintf(ctl->out, "Held; mthpctl release %" JSON_INTEGER_FORMAT " ends that.\n",
			json_integer_value(cookie));
	ctl_reply_done(&r);
	return code;
}

int ctl_release(const struct ctl *ctl)
{
	json_t *p = NULL;

	if (ctl->n_args > 0) {
		char *end;
		long long cookie;

		errno = 0;
		cookie = strtoll(ctl->args[0], &end, 10);
		if (errno || end == ctl->args[0] || *end || cookie < 0) {
			ctl_complain(ctl, "release: not a cookie: %s", ctl->args[0]);
			return CTL_USAGE;
		}
		p = json_pack("{s:I}", "cookie", (json_int_t)cookie);
	}
	return tell(ctl, "org.mthpd1.Release", p, p ? "That hold has ended." : "No hold of mthpctl's stands.");
}

/* ---- configuration ---- */

struct faults {
	const struct ctl *ctl;
	json_t *list; /* with --json */
	unsigned n;
};

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	struct faults *f = userdata;

	f->n++;
	if (f->list) {
		json_t *j = json_pack("{s:s*,s:s*}", "file", file, "message", message);

		json_object_set_new(j, "line", line ? json_integer(line) : json_null());
		json_array_append_new(f->list, j);
		return;
	}
	ctl_put_line(f->ctl->out, file);
	if (line)
		fprintf(f->ctl->out, ":%u", line);
	fputs(": ", f->ctl->out);
	ctl_put_line(f->ctl->out, message);
	fputc('\n', f->ctl->out);
}

int ctl_check_config(const struct ctl *ctl)
{
	struct faults f = {.ctl = ctl, .list = ctl->json ? json_array() : NULL};
	struct config *c = NULL;
	int r = config_load(ctl->n_args > 0 ? ctl->args[0] : NULL, "", on_fault, &f, &c);
	json_t *answer;
	int code = r == 0 ? CTL_OK : CTL_NO;

	if (r == 0)
		config_free(c);
	else if (f.n == 0)
		ctl_complain(ctl, "%s: %s", ctl->verb, strerror(-r));
	if (ctl->json) {
		answer = json_pack("{s:b,s:o}", "ok", r == 0, "faults", f.list);
		if (print_json(ctl, answer) != CTL_OK)
			code = CTL_NO;
		json_decref(answer);
	} else if (r == 0) {
		fputs("No faults.\n", ctl->out);
	}
	return code;
}
