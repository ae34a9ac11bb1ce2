/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "history.h"

#define HISTORY_DEFAULT 20
/* The cookie of the one persistent hold that the socket knows. */
#define HOLD_COOKIE 1

static struct metrics *metrics; /* NULL: out of memory at start */

static const char description[] =
	"# Control of large folio sizes from memory pressure.\n"
	"interface org.mthpd1\n"
	"\n"
	"# The object of mthpctl(1), status.\n"
	"method GetStatus() -> (status: object)\n"
	"# What the loop believes about one group, or about the whole.\n"
	"method Explain(cgroup: ?string) -> (text: string, facts: object)\n"
	"# The newest decisions first.\n"
	"method History(n: ?int) -> (decisions: []object)\n"
	"method Features() -> (features: object)\n"
	"# Differences between what is wanted and what the files hold.\n"
	"method Verify() -> (ok: bool, differences: []object)\n"
	"# The text format of Prometheus.\n"
	"method Metrics() -> (text: string)\n"
	"# With more: each decision; with samples also the header of a trace, in the\n"
	"# first reply, and each tick as the loop saw it.\n"
	"method Monitor(samples: ?bool) -> (decision: ?object, sample: ?object)\n"
	"# For root: the configuration is read again; a faulty one changes nothing.\n"
	"method Reload() -> ()\n"
	"# For root: freezes all switches, over a restart too.\n"
	"method Hold(reason: ?string) -> (cookie: int)\n"
	"method Release(cookie: ?int) -> ()\n"
	"# For root: puts the start values back, and holds.\n"
	"method Restore() -> ()\n"
	"\n"
	"error NotFound (what: string)\n"
	"error BadConfiguration (message: string)\n"
	"error RestoreIncomplete (failures: int)\n"
	"error TooManyClients (limit: int)\n"
	"error Failed (errno: int, message: string)\n";

static int invalid(const char *parameter, const char *reason, json_t **ret_parameters,
	const char **ret_error)
{
	*ret_error = "org.varlink.service.InvalidParameter";
	*ret_parameters = json_pack("{s:s, s:s}", "parameter", parameter, "reason", reason);
	return -EINVAL;
}

/* An optional string parameter: NULL when absent or null; false on another type. */
static bool get_string(const struct varlink_call *call, const char *name, const char **ret)
{
	json_t *v = json_object_get(call->parameters, name);

	*ret = NULL;
	if (!v || json_is_null(v))
		return true;
	*ret = json_string_value(v);
	return *ret != NULL;
}

static int get_status(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	json_t *status = engine_status(userdata);

	(void)call;
	(void)ret_error;
	if (!status)
		return -ENOMEM;
	*ret_parameters = json_pack("{s:o}", "status", status);
	return 0;
}

static int explain(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	const char *cgroup;
	json_t *facts;
	char *text;
	int r;

	if (!get_string(call, "cgroup", &cgroup))
		return invalid("cgroup", "must be a string", ret_parameters, ret_error);
	r = engine_explain(userdata, cgroup, &text, &facts);
	if (r == -ENOENT) {
		*ret_error = "org.mthpd1.NotFound";
		*ret_parameters = json_pack("{s:s}", "what", cgroup);
		return r;
	}
	if (r < 0)
		return r;
	*ret_parameters = json_pack("{s:o, s:o}", "text", json_from_bytes(text), "facts", facts);
	free(text);
	return 0;
}

static int history(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	json_t *v = json_object_get(call->parameters, "n");
	json_int_t n = HISTORY_DEFAULT;

	if (v && !json_is_null(v)) {
		n = json_integer_value(v);
		if (!json_is_integer(v) || n < 0)
			return invalid("n", "must be a whole number, 0 or more", ret_parameters, ret_error);
	}
	*ret_parameters = json_pack("{s:o}", "decisions",
		engine_history(userdata, n > UINT_MAX ? UINT_MAX : (unsigned)n));
	return 0;
}

static int features(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	(void)call;
	(void)ret_error;
	*ret_parameters = json_pack("{s:o}", "features", engine_features(userdata));
	return 0;
}

static int verify(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	bool ok;
	json_t *differences = engine_verify(userdata, &ok);

	(void)call;
	(void)ret_error;
	*ret_parameters = json_pack("{s:b, s:o}", "ok", ok, "differences", differences);
	return 0;
}

static int metrics_now(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	char *text = metrics ? metrics_text(metrics) : NULL;

	(void)call;
	(void)userdata;
	(void)ret_error;
	if (!text)
		return -ENOMEM;
	*ret_parameters = json_pack("{s:o}", "text", json_from_bytes(text));
	free(text);
	return 0;
}

static int reload(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	char why[ENGINE_WHY_LEN];
	int r = engine_reload(userdata, why);

	(void)call;
	if (r < 0) {
		*ret_error = "org.mthpd1.BadConfiguration";
		*ret_parameters = json_pack("{s:o}", "message", json_from_bytes(why));
	}
	return r;
}

static int hold(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	const char *reason;
	char limit[64];
	int r;

	if (!get_string(call, "reason", &reason))
		return invalid("reason", "must be a string", ret_parameters, ret_error);
	r = engine_hold(userdata, reason);
	if (r == -EINVAL) {
		snprintf(limit, sizeof(limit), "must be UTF-8 of at most %d bytes", BASELINE_REASON_MAX);
		return invalid("reason", limit, ret_parameters, ret_error);
	}
	if (r == 0)
		*ret_parameters = json_pack("{s:i}", "cookie", HOLD_COOKIE);
	return r;
}

static int release(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	json_t *v = json_object_get(call->parameters, "cookie");

	if (v && !json_is_null(v) && json_integer_value(v) != HOLD_COOKIE) {
		if (!json_is_integer(v))
			return invalid("cookie", "must be a whole number", ret_parameters, ret_error);
		*ret_error = "org.mthpd1.NotFound";
		*ret_parameters = json_pack("{s:s}", "what", "no hold has this cookie");
		return -ENOENT;
	}
	return engine_release(userdata);
}

static int restore(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	int failures = engine_restore(userdata);

	(void)call;
	if (failures <= 0)
		return failures;
	*ret_error = "org.mthpd1.RestoreIncomplete";
	*ret_parameters = json_pack("{s:i}", "failures", failures);
	return -EIO;
}

/* ---- Monitor ----------------------------------------------------------- */

enum topic { TOPIC_DECISIONS, TOPIC_SAMPLES };

static int monitor(const struct varlink_call *call, void *userdata, json_t **ret_parameters,
	const char **ret_error)
{
	json_t *v = json_object_get(call->parameters, "samples");
	bool samples = json_is_true(v);
	int r;

	if (v && !json_is_null(v) && !json_is_boolean(v))
		return invalid("samples", "must be true or false", ret_parameters, ret_error);
	r = varlink_stream_start(call->client, samples ? TOPIC_SAMPLES : TOPIC_DECISIONS);
	if (r < 0)
		return r;
	*ret_parameters = json_pack(
		"{s:n, s:o}", "decision", "sample", samples ? engine_trace_header(userdata) : json_null());
	return *ret_parameters ? 0 : -ENOMEM;
}

struct monitor {
	struct engine *engine;
	struct varlink_server *server;
};

static bool monitor_wants_samples(void *userdata)
{
	const struct monitor *m = userdata;

	return varlink_stream_count(m->server, TOPIC_SAMPLES) > 0;
}

static void monitor_sample(json_t *tick, void *userdata)
{
	const struct monitor *m = userdata;
	json_t *j = json_pack("{s:n, s:O}", "decision", "sample", tick);

	varlink_stream_publish(m->server, TOPIC_SAMPLES, j);
	json_decref(j);
}

static void monitor_decision(const struct decision *d, void *userdata)
{
	const struct monitor *m = userdata;
	json_t *j;

	if (!varlink_stream_count(m->server, TOPIC_SAMPLES) &&
		!varlink_stream_count(m->server, TOPIC_DECISIONS))
		return;
	j = json_pack("{s:o, s:n}", "decision", engine_decision_json(m->engine, d), "sample");
	varlink_stream_publish(m->server, TOPIC_SAMPLES, j);
	varlink_stream_publish(m->server, TOPIC_DECISIONS, j);
	json_decref(j);
}

/* ---- the table --------------------------------------------------------- */

static const struct varlink_method methods[] = {
	{ .name = "org.mthpd1.GetStatus", .takes = "", .handler = get_status },
	{ .name = "org.mthpd1.Explain", .takes = "cgroup", .handler = explain },
	{ .name = "org.mthpd1.History", .takes = "n", .handler = history },
	{ .name = "org.mthpd1.Features", .takes = "", .handler = features },
	{ .name = "org.mthpd1.Verify", .takes = "", .handler = verify },
	{ .name = "org.mthpd1.Metrics", .takes = "", .handler = metrics_now },
	{ .name = "org.mthpd1.Monitor", .takes = "samples", .stream = true, .handler = monitor },
	{ .name = "org.mthpd1.Reload", .takes = "", .root_only = true, .handler = reload },
	{ .name = "org.mthpd1.Hold", .takes = "reason", .root_only = true, .handler = hold },
	{ .name = "org.mthpd1.Release", .takes = "cookie", .root_only = true, .handler = release },
	{ .name = "org.mthpd1.Restore", .takes = "", .root_only = true, .handler = restore },
};

static struct varlink_info info = {
	.vendor = "mthpd project",
	.product = "mthpd",
	.version = MTHPD_VERSION,
	.url = "https://example.org/mthpd",
	.interface = "org.mthpd1",
	.interface_description = description,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
};

int service_new(struct event_base *base, const char *runtime_dir, struct engine *e,
	struct metrics *shared_metrics, struct varlink_server **ret)
{
	static struct monitor m;
	static const struct engine_observer observer = {
		.decision = monitor_decision,
		.wants_samples = monitor_wants_samples,
		.sample = monitor_sample,
		.userdata = &m,
	};
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/org.mthpd1", runtime_dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	info.userdata = e;
	metrics = shared_metrics;
	r = varlink_server_new(base, path, &info, ret);
	if (r < 0)
		return r;
	m = (struct monitor){ .engine = e, .server = *ret };
	r = engine_observe(e, &observer);
	if (r < 0) {
		varlink_server_free(*ret);
		*ret = NULL;
	}
	return r;
}
