/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpctl without its main(): fixtures of the status object, and a real varlink server
 * in a child process that answers what the test tells it to.
 */
#ifndef MTHPD_TEST_CTL_WORLD_H
#define MTHPD_TEST_CTL_WORLD_H

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "cleanup.h"
#include "ctl-client.h"
#include "ctl-status.h"
#include "ctl-text.h"
#include "ctl.h"
#include "parse.h"
#include "varlink.h"

#define NOBODY 65534

/* ---- text ---- */

static inline char *read_file(const char *path)
{
	static char buf[65536];
	ssize_t n = parse_read_at(AT_FDCWD, path, buf, sizeof(buf));

	assert_true(n >= 0);
	return buf;
}

static inline char *render(const json_t *status, size_t groups)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ctl_status_print(f, status, groups);
	assert_int_equal(fclose(f), 0);
	return text;
}

static inline json_t *load(const char *name)
{
	char path[128];
	json_t *j;

	snprintf(path, sizeof(path), "tests/fixtures/status-%s.json", name);
	j = json_load_file(path, 0, NULL);
	assert_non_null(j);
	return j;
}

/* Nothing that a terminal would obey, no line wider than it. */
static inline void assert_harmless(const char *text)
{
	size_t column = 0;

	for (; *text; text++) {
		if (*text == '\n') {
			column = 0;
			continue;
		}
		assert_in_range(*text, 0x20, 0x7e);
		assert_true(++column <= CTL_WIDTH);
	}
}

/* ---- the service that answers ---- */

struct answer {
	const char *parameters; /* JSON */
	const char *error;	/* with parameters in it */
};

struct service {
	char dir[64], path[128];
	pid_t pid;
};

static struct answer answers[11];
enum { STATUS, EXPLAIN, HISTORY, FEATURES, VERIFY, RELOAD, HOLD, RELEASE, RESTORE, METRICS };

static inline int give(const struct answer *a, json_t **ret, const char **ret_error)
{
	*ret = json_loads(a->parameters, 0, NULL);
	*ret_error = a->error;
	return a->error ? -EIO : 0;
}

#define HANDLER(name, index)                                                                       \
	static int name(const struct varlink_call *call, void *userdata, json_t **ret,             \
		const char **ret_error)                                                            \
	{                                                                                          \
		(void)call;                                                                        \
		(void)userdata;                                                                    \
		return give(&answers[index], ret, ret_error);                                      \
	}
HANDLER(on_status, STATUS)
HANDLER(on_history, HISTORY)
HANDLER(on_features, FEATURES)
HANDLER(on_verify, VERIFY)
HANDLER(on_reload, RELOAD)
HANDLER(on_restore, RESTORE)

/* Says what it was asked, so that the tests can check what was sent. */
static inline int on_echo(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	_cleanup_free_ char *text = json_dumps(call->parameters, JSON_COMPACT);
	const char *cgroup = json_string_value(json_object_get(call->parameters, "cgroup"));

	(void)userdata;
	if (cgroup && strcmp(cgroup, "") && strcmp(cgroup, "known/group") &&
		strcmp(cgroup, "-.slice")) {
		*ret_error = "org.mthpd1.NotFound";
		*ret = json_pack("{s:s}", "what", cgroup);
		return -ENOENT;
	}
	*ret = json_pack("{s:s,s:{},s:i}", "text", text, "facts", "cookie", 7);
	return 0;
}

static const struct varlink_method methods[] = {
	{"org.mthpd1.GetStatus", false, false, NULL, on_status},
	{"org.mthpd1.Explain", false, false, NULL, on_echo},
	{"org.mthpd1.History", false, false, NULL, on_history},
	{"org.mthpd1.Features", false, false, NULL, on_features},
	{"org.mthpd1.Verify", false, false, NULL, on_verify},
	{"org.mthpd1.Reload", false, false, NULL, on_reload}, {"org.mthpd1.Hold", false, false, NULL, on_echo},
	{"org.mthpd1.Release", true, false, NULL, on_echo},
	{"org.mthpd1.Restore", false, false, NULL, on_restore},
	/* Metrics is left out on purpose */
};

static const struct varlink_info info = {"v", "p", "1", "u", "org.mthpd1", "interface org.mthpd1\n",
	methods, ELEMENTSOF(methods), NULL};

static inline void serve(struct service *s)
{
	struct event_base *base = event_base_new();
	struct varlink_server *server;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (varlink_server_new(base, s->path, &info, &server) < 0)
		_exit(1);
	event_base_dispatch(base);
	_exit(0);
}

/* The socket is there a moment before somebody listens on it. */
static inline bool listens(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool r;

	strcpy(a.sun_path, path);
	r = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return r;
}

static inline void start(struct service *s)
{
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0)
		serve(s);
	for (unsigned i = 0; i < 500 && !listens(s->path); i++)
		nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static inline void stop(struct service *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
	unlink(s->path);
}

static inline int setup(void **state)
{
	struct service *s = calloc(1, sizeof(*s));

	strcpy(s->dir, "/tmp/test-ctl-XXXXXX");
	if (!mkdtemp(s->dir) || chmod(s->dir, 0755) < 0)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	memset(answers, 0, sizeof(answers));
	for (size_t i = 0; i < ELEMENTSOF(answers); i++)
		answers[i].parameters = "{}";
	*state = s;
	return 0;
}

static inline int teardown(void **state)
{
	struct service *s = *state;
	char command[128];

	stop(s);
	snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	if (system(command) != 0)
		return -1;
	free(s);
	return 0;
}

/* What is quoted can be pasted: bash makes the same bytes of it. */
/* ---- running the tool ---- */

static char *out_text, *err_text;

/* ctl_main() with --socket and the words of @args up to NULL. */
static inline int run_at(const char *path, const char *const *args)
{
	char socket[512], *argv[16] = {(char *)"mthpctl", socket};
	size_t out_size, err_size;
	FILE *out, *err;
	int argc = 2, code;

	free(out_text);
	free(err_text);
	out = open_memstream(&out_text, &out_size);
	err = open_memstream(&err_text, &err_size);
	snprintf(socket, sizeof(socket), "--socket=%s", path);
	while (*args)
		argv[argc++] = (char *)*args++;
	code = ctl_main(argc, argv, out, err);
	fclose(out);
	fclose(err);
	return code;
}

#define RUN(s, ...) run_at((s)->path, (const char *const[]){__VA_ARGS__, NULL})

static inline void assert_json_output(const char *expected)
{
	json_t *a = json_loads(out_text, JSON_DECODE_ANY, NULL);
	json_t *b = json_loads(expected, JSON_DECODE_ANY, NULL);

	assert_non_null(a);
	assert_non_null(b);
	assert_true(json_equal(a, b));
	json_decref(a);
	json_decref(b);
}

#endif
