/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The varlink server on a real socket in a temporary directory. Server and
 * clients share one thread: each client operation turns the loop until it has
 * what it waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include <cmocka.h>

#include "cleanup.h"
#include "varlink-wire.h"
#include "varlink.h"

#define NOBODY 65534
#define WAIT_MSEC 5000
#define DESCRIPTION "interface org.test\nmethod Echo(text: string) -> (text: string)\n"

struct state {
	char dir[64], path[128];
	struct event_base *base;
	struct varlink_server *server;
	unsigned calls;
	size_t reply_bytes;
};

/* ---- the service ---- */

static int echo(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	struct state *s = userdata;
	const char *text = json_string_value(json_object_get(call->parameters, "text"));

	(void)ret_error;
	s->calls++;
	if (!text) {
		*ret = json_pack("{s:s}", "parameter", "text");
		return -EINVAL;
	}
	*ret = json_pack("{s:s}", "text", text);
	return 0;
}

static int big(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	struct state *s = userdata;
	_cleanup_free_ char *text = malloc(s->reply_bytes + 1);

	(void)call;
	(void)ret_error;
	memset(text, 'x', s->reply_bytes);
	text[s->reply_bytes] = '\0';
	*ret = json_pack("{s:s}", "text", text);
	s->calls++;
	return 0;
}

static int monitor(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	(void)userdata;
	(void)ret;
	(void)ret_error;
	return varlink_stream_start(call->client, 3);
}

/* Not a stream method: starting one must be refused. */
static int sneak(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	(void)userdata;
	(void)ret_error;
	*ret = json_pack("{s:i}", "result", varlink_stream_start(call->client, 3));
	return 0;
}

static int fails(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	int err = (int)json_integer_value(json_object_get(call->parameters, "errno"));

	(void)userdata;
	if (err == ENOENT) {
		*ret_error = "org.test.NotFound";
		*ret = json_pack("{s:s}", "what", "a group");
	}
	return -err;
}

static const struct varlink_method methods[] = {
	{"org.test.Echo", false, false, NULL, echo},
	{"org.test.Big", false, false, NULL, big},
	{"org.test.Change", true, false, NULL, echo},
	{"org.test.Monitor", false, true, NULL, monitor},
	{"org.test.Sneak", false, false, NULL, sneak},
	{"org.test.Fail", false, false, NULL, fails},
	{"org.test.Later", false, false, NULL, NULL},
	{"org.test.One", false, false, "text", echo},
	{"org.test.None", false, false, "", echo},
};

static struct varlink_info info = {"vendor", "product", "1.2", "https://example.org", "org.test",
	DESCRIPTION, methods, ELEMENTSOF(methods), NULL};

/* ---- client side ---- */

static uint64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void turn(struct state *s)
{
	struct timespec nap = {0, 200000};

	assert_true(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
	nanosleep(&nap, NULL);
}

static void turn_for(struct state *s, unsigned msec)
{
	uint64_t end = now_msec() + msec;

	while (now_msec() < end)
		turn(s);
}

static int dial(struct state *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	strcpy(a.sun_path, s->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void put(struct state *s, int fd, const char *bytes, size_t len)
{
	uint64_t end = now_msec() + WAIT_MSEC;

	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else {
			assert_int_equal(errno, EAGAIN);
			assert_true(now_msec() < end);
		}
		turn(s);
	}
}

/* One message, NULL at the end of the connection; fails when neither comes. */
static json_t *get(struct state *s, int fd)
{
	static char buf[VARLINK_OUTPUT_BYTES_MAX + 1];
	size_t len = 0;
	uint64_t end = now_msec() + WAIT_MSEC;

	while (now_msec() < end && len < sizeof(buf)) {
		/* looks first, so that the next message stays where it is */
		ssize_t n = recv(fd, buf + len, sizeof(buf) - len, MSG_PEEK);
		char *nul = n > 0 ? memchr(buf + len, 0, (size_t)n) : NULL;

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return NULL;
		if (n < 0) {
			turn(s);
			continue;
		}
		n = recv(fd, buf + len, nul ? (size_t)(nul - buf) + 1 - len : (size_t)n, 0);
		assert_true(n > 0);
		len += (size_t)n;
		if (nul) {
			json_t *j = json_loads(buf, 0, NULL);

			assert_non_null(j);
			return j;
		}
	}
	fail_msg("no reply");
	return NULL;
}

static json_t *call(struct state *s, int fd, const char *text)
{
	put(s, fd, text, strlen(text) + 1);
	return get(s, fd);
}

static const char *str(const json_t *j, const char *object, const char *key)
{
	const char *v = json_string_value(json_object_get(json_object_get(j, object), key));

	return v ? v : "";
}

static void assert_error(json_t *j, const char *error)
{
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "error")), error);
	assert_true(json_is_object(json_object_get(j, "parameters")));
}

static void assert_works(struct state *s, int fd)
{
	json_t *j = call(s, fd, "{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\"}}");

	assert_string_equal(str(j, "parameters", "text"), "ok");
	assert_null(json_object_get(j, "error"));
	assert_null(json_object_get(j, "continues"));
	json_decref(j);
}

static void assert_closed(struct state *s, int fd)
{
	assert_null(get(s, fd));
	close(fd);
}

static bool am_root(void)
{
	return geteuid() == 0;
}

/* ---- set-up ---- */

static int setup(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	strcpy(s->dir, "/tmp/test-varlink-XXXXXX");
	if (!mkdtemp(s->dir) || chmod(s->dir, 0755) < 0)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	s->base = event_base_new();
	s->reply_bytes = 100;
	info.userdata = s;
	*state = s;
	return varlink_server_new(s->base, s->path, &info, &s->server);
}

static int teardown(void **state)
{
	struct state *s = *state;

	varlink_server_free(s->server);
	event_base_free(s->base);
	/* fails if the socket was left behind */
	if (rmdir(s->dir) < 0)
		return -1;
	free(s);
	return 0;
}

/* ---- tests ---- */

static void service_interface(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	struct stat st;
	json_t *j;

	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	j = call(s, fd, "{\"method\":\"org.varlink.service.GetInfo\"}");
	assert_string_equal(str(j, "parameters", "vendor"), "vendor");
	assert_string_equal(str(j, "parameters", "product"), "product");
	assert_string_equal(str(j, "parameters", "version"), "1.2");
	assert_string_equal(str(j, "parameters", "url"), "https://example.org");
	json_t *list = json_object_get(json_object_get(j, "parameters"), "interfaces");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_array_get(list, 0)), "org.varlink.service");
	assert_string_equal(json_string_value(json_array_get(list, 1)), "org.test");
	json_decref(j);

	j = call(s, fd,
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		"\"parameters\":{\"interface\":\"org.test\"}}");
	assert_string_equal(str(j, "parameters", "description"), DESCRIPTION);
	json_decref(j);
	j = call(s, fd,
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		"\"parameters\":{\"interface\":\"org.varlink.service\"}}");
	assert_non_null(
		strstr(str(j, "parameters", "description"), "interface org.varlink.service\n"));
	json_decref(j);
	close(fd);
}

#define SERVICE "org.varlink.service."
static const struct {
	const char *request, *error, *key, *value;
} refused[] = {
	{"", SERVICE "InvalidParameter", "parameter", "request"},
	{" ", SERVICE "InvalidParameter", "parameter", "request"},
	{"nonsense", SERVICE "InvalidParameter", "reason", "not a JSON object"},
	{"[]", SERVICE "InvalidParameter", "reason", "not a JSON object"},
	{"\"a\"", SERVICE "InvalidParameter", "reason", "not a JSON object"},
	{"42", SERVICE "InvalidParameter", "reason", "not a JSON object"},
	{"{\"method\":\"org.test.Echo\"", SERVICE "InvalidParameter", "reason",
		"the JSON text ends too early"},
	{"{\"method\":\"org.test.Echo\"} {}", SERVICE "InvalidParameter", "reason",
		"there is text after the JSON object"},
	{"{\"method\":\"a.b\",\"method\":\"org.test.Echo\"}", SERVICE "InvalidParameter", "reason",
		"a key stands twice in one object"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"\xff\"}}",
		SERVICE "InvalidParameter", "reason", "not valid UTF-8"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"\xed\xa0\x80\"}}",
		SERVICE "InvalidParameter", "reason", "not valid UTF-8"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"a\\u0000b\"}}",
		SERVICE "InvalidParameter", "reason", "a string holds a NUL character"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":{\"n\":99999999999999999999}}",
		SERVICE "InvalidParameter", "reason", "a number is out of range"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":{\"n\":1e999}}", SERVICE "InvalidParameter",
		"reason", "a number is out of range"},
	{"{}", SERVICE "InvalidParameter", "parameter", "method"},
	{"{\"method\":null}", SERVICE "InvalidParameter", "parameter", "method"},
	{"{\"method\":7}", SERVICE "InvalidParameter", "parameter", "method"},
	{"{\"method\":\"\"}", SERVICE "InvalidParameter", "parameter", "method"},
	{"{\"method\":\"org.test.\\u001b[31m\"}", SERVICE "InvalidParameter", "parameter",
		"method"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":[]}", SERVICE "InvalidParameter",
		"parameter", "parameters"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":\"x\"}", SERVICE "InvalidParameter",
		"parameter", "parameters"},
	{"{\"method\":\"org.test.Echo\",\"more\":1}", SERVICE "InvalidParameter", "parameter",
		"more"},
	{"{\"method\":\"org.test.Echo\",\"more\":null}", SERVICE "InvalidParameter", "parameter",
		"more"},
	{"{\"method\":\"org.test.Echo\",\"oneway\":\"yes\"}", SERVICE "InvalidParameter",
		"parameter", "oneway"},
	{"{\"method\":\"org.test.Echo\",\"upgrade\":true}", SERVICE "InvalidParameter", "parameter",
		"upgrade"},
	{"{\"method\":\"org.test.Echo\",\"oneway\":true,\"more\":true}", SERVICE "InvalidParameter",
		"parameter", "oneway"},
	{"{\"method\":\"org.test.Echo\",\"params\":{}}", SERVICE "InvalidParameter", "parameter",
		"request"},
	{"{\"method\":\"org.test.One\",\"parameters\":{\"text\":\"a\",\"txet\":1}}", SERVICE "InvalidParameter",
		"parameter", "txet"},
	{"{\"method\":\"org.test.None\",\"parameters\":{\"text\":1}}", SERVICE "InvalidParameter", "parameter",
		"text"},
	{"{\"method\":\"org.test.Nothing\"}", SERVICE "MethodNotFound", "method",
		"org.test.Nothing"},
	{"{\"method\":\"org.varlink.service.Nothing\"}", SERVICE "MethodNotFound", "method",
		"org.varlink.service.Nothing"},
	{"{\"method\":\"Echo\"}", SERVICE "MethodNotFound", "method", "Echo"},
	{"{\"method\":\"org.tes.Echo\"}", SERVICE "InterfaceNotFound", "interface", "org.tes"},
	{"{\"method\":\"org.test.sub.Echo\"}", SERVICE "InterfaceNotFound", "interface",
		"org.test.sub"},
	{"{\"method\":\"org.test.Later\"}", SERVICE "MethodNotImplemented", "method",
		"org.test.Later"},
	{"{\"method\":\"org.test.Monitor\"}", SERVICE "ExpectedMore", "method", "org.test.Monitor"},
	{"{\"method\":\"org.test.Echo\"}", SERVICE "InvalidParameter", "parameter", "text"},
	{"{\"method\":\"org.test.Echo\",\"parameters\":null}", SERVICE "InvalidParameter",
		"parameter", "text"},
	{"{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"a\":1}}",
		SERVICE "InvalidParameter", "parameter", "a"},
	{"{\"method\":\"org.varlink.service.GetInterfaceDescription\"}", SERVICE "InvalidParameter",
		"parameter", "interface"},
	{"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{"
	 "\"interface\":1}}",
		SERVICE "InvalidParameter", "parameter", "interface"},
	{"{\"method\":\"org.varlink.service.GetInterfaceDescription\","
	 "\"parameters\":{\"interface\":\"x\xc3\xa9\"}}",
		SERVICE "InterfaceNotFound", "interface", "x\xc3\xa9"},
	{"{\"method\":\"org.test.Fail\",\"parameters\":{\"errno\":1}}", SERVICE "PermissionDenied",
		NULL, NULL},
	{"{\"method\":\"org.test.Fail\",\"parameters\":{\"errno\":22}}", SERVICE "InvalidParameter",
		NULL, NULL},
	{"{\"method\":\"org.test.Fail\",\"parameters\":{\"errno\":2}}", "org.test.NotFound", "what",
		"a group"},
	{"{\"method\":\"org.test.Fail\",\"parameters\":{\"errno\":5}}", "org.test.Failed",
		"message", "Input/output error"},
};

/* Each bad request gets its own error, and the same connection goes on. */
static void bad_requests(void **state)
{
	struct state *s = *state;
	int fd = dial(s);

	for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
		json_t *j = call(s, fd, refused[i].request);

		assert_error(j, refused[i].error);
		if (refused[i].key)
			assert_string_equal(str(j, "parameters", refused[i].key), refused[i].value);
		json_decref(j);
		assert_works(s, fd);
	}
	close(fd);
}

/* {"method":"org.test.Echo","parameters":{"text":"ok","x":[[[...]]]}} */
static json_t *call_nested(struct state *s, int fd, size_t depth)
{
	static const char head[] =
		"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\",\"x\":";
	char *text = calloc(1, sizeof(head) + 2 * depth + 8);
	size_t n = strlen(head);
	json_t *j;

	if (!text)
		return NULL;
	memcpy(text, head, n);
	memset(text + n, '[', depth);
	memset(text + n + depth, ']', depth);
	strcpy(text + n + 2 * depth, "}}");
	j = call(s, fd, text);
	free(text);
	return j;
}

static void nesting(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	json_t *j = call_nested(s, fd, VARLINK_DEPTH_MAX - 2);

	assert_string_equal(str(j, "parameters", "text"), "ok");
	json_decref(j);
	for (size_t depth = VARLINK_DEPTH_MAX - 1; depth < 30000; depth = depth * 3 + 1000) {
		j = call_nested(s, fd, depth);
		assert_error(j, SERVICE "InvalidParameter");
		assert_string_equal(str(j, "parameters", "reason"), "nested too deeply");
		json_decref(j);
	}
	/* brackets inside of strings do not count, escaped quotes do not end one */
	j = call(s, fd,
		"{\"method\":\"org.test.Echo\",\"parameters\":"
		"{\"text\":\"[[[[[[[[[[[[\\\"[[[[[[[[[[[[{{{{{{\"}}");
	assert_string_equal(str(j, "parameters", "text"), "[[[[[[[[[[[[\"[[[[[[[[[[[[{{{{{{");
	json_decref(j);
	close(fd);
}

static void put_sized(struct state *s, int fd, size_t len, bool with_end)
{
	static const char request[] =
		"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\"}}";
	char *text = malloc(len + 1);

	memset(text, ' ', len);
	memcpy(text, request, strlen(request));
	text[len] = '\0';
	put(s, fd, text, len + with_end);
	free(text);
}

static void request_size(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	json_t *j;

	put_sized(s, fd, VARLINK_REQUEST_BYTES_MAX, true);
	j = get(s, fd);
	assert_string_equal(str(j, "parameters", "text"), "ok");
	json_decref(j);

	put_sized(s, fd, VARLINK_REQUEST_BYTES_MAX + 1, true);
	j = get(s, fd);
	assert_error(j, SERVICE "InvalidParameter");
	assert_string_equal(str(j, "parameters", "reason"), "longer than 65536 bytes");
	json_decref(j);
	assert_closed(s, fd);

	/* no end in sight: refused when the limit is passed, not later */
	fd = dial(s);
	put_sized(s, fd, VARLINK_REQUEST_BYTES_MAX + 1, false);
	j = get(s, fd);
	assert_error(j, SERVICE "InvalidParameter");
	json_decref(j);
	assert_closed(s, fd);
	assert_int_equal(varlink_client_count(s->server), 0);
}

static void client_limit(void **state)
{
	struct state *s = *state;
	int fd[VARLINK_CLIENTS_MAX], extra;
	json_t *j;

	for (unsigned i = 0; i < VARLINK_CLIENTS_MAX; i++) {
		fd[i] = dial(s);
		assert_works(s, fd[i]);
	}
	assert_int_equal(varlink_client_count(s->server), VARLINK_CLIENTS_MAX);
	extra = dial(s);
	j = get(s, extra);
	assert_error(j, "org.test.TooManyClients");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "parameters"), "limit")), 64);
	json_decref(j);
	assert_closed(s, extra);
	for (unsigned i = 0; i < VARLINK_CLIENTS_MAX; i++)
		assert_works(s, fd[i]);
	close(fd[5]);
	turn_for(s, 20);
	fd[5] = dial(s);
	assert_works(s, fd[5]);
	for (unsigned i = 0; i < VARLINK_CLIENTS_MAX; i++)
		close(fd[i]);
	turn_for(s, 20);
	assert_int_equal(varlink_client_count(s->server), 0);
}

/* Others must not be able to keep root out. */
static void root_gets_in(void **state)
{
	struct state *s = *state;
	int fd[VARLINK_CLIENTS_MAX], root, other;

	if (!am_root())
		skip();
	assert_int_equal(seteuid(NOBODY), 0);
	for (unsigned i = 0; i < VARLINK_CLIENTS_MAX; i++) {
		fd[i] = dial(s);
		turn(s);
	}
	assert_works(s, fd[0]); /* so that the second is the quietest */
	other = dial(s);
	assert_int_equal(seteuid(0), 0);
	json_t *j = get(s, other);
	assert_error(j, "org.test.TooManyClients");
	json_decref(j);
	assert_closed(s, other);
	root = dial(s);
	assert_works(s, root);
	assert_closed(s, fd[1]);
	assert_works(s, fd[0]);
	assert_int_equal(varlink_client_count(s->server), VARLINK_CLIENTS_MAX);
	close(root);
	for (unsigned i = 0; i < VARLINK_CLIENTS_MAX; i++) {
		if (i != 1)
			close(fd[i]);
	}
}

static void root_only(void **state)
{
	static const char change[] =
		"{\"method\":\"org.test.Change\",\"parameters\":{\"text\":\"ok\"}}";
	struct state *s = *state;
	int fd;
	json_t *j;

	if (am_root()) {
		fd = dial(s);
		j = call(s, fd, change);
		assert_string_equal(str(j, "parameters", "text"), "ok");
		json_decref(j);
		close(fd);
		assert_int_equal(seteuid(NOBODY), 0);
	}
	fd = dial(s);
	s->calls = 0;
	j = call(s, fd, change);
	assert_error(j, SERVICE "PermissionDenied");
	assert_string_equal(str(j, "parameters", "method"), "org.test.Change");
	json_decref(j);
	assert_int_equal(s->calls, 0);
	assert_works(s, fd);
	close(fd);
	/* who connected counts, not who sends */
	if (getuid() == 0) {
		fd = dial(s);
		assert_int_equal(seteuid(0), 0);
		j = call(s, fd, change);
		assert_error(j, SERVICE "PermissionDenied");
		json_decref(j);
		close(fd);
	}
}

static void half_request(void **state)
{
	struct state *s = *state;
	int idle, half, trickle;
	uint64_t begin;
	json_t *j;

	varlink_server_set_timeouts(s->server, 1500, 30000);
	idle = dial(s);
	assert_works(s, idle);
	half = dial(s);
	begin = now_msec();
	put(s, half, "{\"method\":", 10);
	trickle = dial(s);
	/* a byte each 20 ms does not buy more time */
	for (unsigned i = 0; i < 12; i++) {
		put(s, trickle, " ", 1);
		turn_for(s, 20);
	}
	j = get(s, half);
	assert_error(j, SERVICE "InvalidParameter");
	assert_string_equal(str(j, "parameters", "reason"), "not finished in time");
	json_decref(j);
	assert_closed(s, half);
	assert_true(now_msec() - begin >= 1490); /* libevent's clock ticks every 4 ms */
	j = get(s, trickle);
	assert_error(j, SERVICE "InvalidParameter");
	json_decref(j);
	assert_closed(s, trickle);
	assert_true(now_msec() - begin < 4000);
	assert_works(s, idle);
	close(idle);
}

/* The same with the time that counts in service. */
static void half_request_default(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	uint64_t begin = now_msec();

	put(s, fd, "{", 1);
	while (varlink_client_count(s->server) > 0 && now_msec() - begin < 12000)
		turn_for(s, 50);
	assert_in_range(now_msec() - begin, 9900, 11500);
	json_t *j = get(s, fd);
	assert_error(j, SERVICE "InvalidParameter");
	json_decref(j);
	assert_closed(s, fd);
}

static void oneway(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	json_t *j;

	s->calls = 0;
	const char ok[] =
		"{\"method\":\"org.test.Echo\",\"oneway\":true,\"parameters\":{\"text\":\"a\"}}";
	const char bad[] = "{\"method\":\"org.test.Nothing\",\"oneway\":true}";
	put(s, fd, ok, sizeof(ok));
	put(s, fd, bad, sizeof(bad));
	j = call(s, fd,
		"{\"method\":\"org.test.Echo\",\"oneway\":false,\"parameters\":{\"text\":\"b\"}}");
	assert_string_equal(str(j, "parameters", "text"), "b");
	assert_int_equal(s->calls, 2);
	json_decref(j);
	close(fd);
}

/* Many calls in one go, then the end of sending: all answered, in order. */
static void pipeline(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	char text[128];

	for (unsigned i = 0; i < 200; i++) {
		int n = snprintf(text, sizeof(text),
			"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"%u\"}}", i);

		assert_int_equal(send(fd, text, (size_t)n + 1, 0), n + 1);
	}
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (unsigned i = 0; i < 200; i++) {
		json_t *j = get(s, fd);

		snprintf(text, sizeof(text), "%u", i);
		assert_non_null(j);
		assert_string_equal(str(j, "parameters", "text"), text);
		json_decref(j);
	}
	assert_closed(s, fd);
	assert_int_equal(varlink_client_count(s->server), 0);
}

/* Whoever sends thousands of calls is served in turns with the others. */
static void fairness(void **state)
{
	static const char request[] =
		"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\"}}";
	struct state *s = *state;
	static char many[500 * sizeof(request)];
	int greedy = dial(s), other = dial(s);

	turn_for(s, 20);
	s->calls = 0;
	for (size_t i = 0; i < sizeof(many); i += sizeof(request))
		memcpy(many + i, request, sizeof(request));
	assert_int_equal(send(greedy, many, sizeof(many), 0), sizeof(many));
	assert_int_equal(send(other, request, sizeof(request), 0), sizeof(request));
	for (;;) {
		char byte;

		assert_true(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
		if (recv(other, &byte, 1, MSG_PEEK) == 1)
			break;
		assert_true(s->calls < 20);
	}
	close(greedy);
	close(other);
}

/* Sends calls and never reads: others are served all the time, what the
 * server holds for it is bounded, and it is dropped when it has stalled. */
static void slow_client(void **state)
{
	static const char request[] = "{\"method\":\"org.test.Big\"}";
	struct state *s = *state;
	int slow, other;
	ssize_t n;
	uint64_t begin;
	struct rusage before, after;

	varlink_server_set_timeouts(s->server, 10000, 500);
	slow = dial(s);
	other = dial(s);
	s->reply_bytes = 1024 * 1024;
	s->calls = 0;
	getrusage(RUSAGE_SELF, &before);
	begin = now_msec();
	while ((n = send(slow, request, sizeof(request), MSG_NOSIGNAL)) > 0 &&
		now_msec() - begin < 50)
		;
	while (varlink_client_count(s->server) == 2 || s->calls == 0) {
		assert_true(now_msec() - begin < WAIT_MSEC);
		assert_works(s, other);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_true(now_msec() - begin >= 450);
	/* the second answer never began; "other" did not call Big */
	assert_true(s->calls - 1 < 5000);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
	assert_works(s, other);
	close(other);
	close(slow);
}

static void reply_too_large(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	json_t *j;

	s->reply_bytes = VARLINK_OUTPUT_BYTES_MAX;
	j = call(s, fd, "{\"method\":\"org.test.Big\"}");
	assert_error(j, "org.test.Failed");
	assert_string_equal(str(j, "parameters", "message"), "Message too long");
	json_decref(j);
	assert_works(s, fd);
	s->reply_bytes = VARLINK_OUTPUT_BYTES_MAX - 100;
	j = call(s, fd, "{\"method\":\"org.test.Big\"}");
	assert_int_equal(strlen(str(j, "parameters", "text")), s->reply_bytes);
	json_decref(j);
	close(fd);
}

static int subscribe(struct state *s)
{
	int fd = dial(s);
	json_t *j = call(s, fd, "{\"method\":\"org.test.Monitor\",\"more\":true}");

	assert_true(json_is_true(json_object_get(j, "continues")));
	assert_null(json_object_get(j, "error"));
	json_decref(j);
	return fd;
}

static void stream(void **state)
{
	struct state *s = *state;
	int a = subscribe(s), b = subscribe(s), plain = dial(s);
	json_t *p = json_pack("{s:i}", "n", 7), *j;

	assert_int_equal(varlink_stream_count(s->server, 3), 2);
	assert_int_equal(varlink_stream_count(s->server, 4), 0);
	varlink_stream_publish(s->server, 4, p);
	varlink_stream_publish(s->server, 3, p);
	for (unsigned i = 0; i < 2; i++) {
		j = get(s, i ? b : a);
		assert_true(json_is_true(json_object_get(j, "continues")));
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(j, "parameters"), "n")),
			7);
		json_decref(j);
	}
	assert_works(s, plain);
	/* a call behind a stream waits for its end, which does not come */
	const char late[] = "{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"late\"}}";
	put(s, a, late, sizeof(late));
	turn_for(s, 20);
	varlink_stream_publish(s->server, 3, p);
	j = get(s, a);
	assert_true(json_is_true(json_object_get(j, "continues")));
	json_decref(j);
	close(a);
	turn_for(s, 20);
	assert_int_equal(varlink_stream_count(s->server, 3), 1);
	/* only a stream method may start a stream, and only the call that asked */
	j = call(s, plain, "{\"method\":\"org.test.Sneak\",\"more\":true}");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "parameters"), "result")),
		-EINVAL);
	assert_null(json_object_get(j, "continues"));
	json_decref(j);
	assert_int_equal(varlink_stream_count(s->server, 3), 1);
	json_decref(p);
	close(b);
	close(plain);
	turn_for(s, 20);
	assert_int_equal(varlink_stream_count(s->server, 3), 0);
}

/* A subscriber that does not read is dropped at its limit; one that reads
 * loses nothing. */
static void slow_subscriber(void **state)
{
	struct state *s = *state;
	int slow = subscribe(s), good = subscribe(s);
	char *text = malloc(700 * 1024);
	json_t *p;
	unsigned sent = 0;

	memset(text, 'y', 700 * 1024);
	p = json_pack("{s:s%}", "text", text, (size_t)700 * 1024);
	while (varlink_stream_count(s->server, 3) == 2) {
		json_t *j;

		varlink_stream_publish(s->server, 3, p);
		sent++;
		j = get(s, good);
		assert_non_null(j);
		json_decref(j);
		assert_true(sent < 10);
	}
	assert_in_range(sent, 4, 8);
	turn_for(s, 20);
	assert_int_equal(varlink_client_count(s->server), 1);
	json_decref(p);
	free(text);
	close(slow);
	close(good);
}

/* The sum over all clients has a limit of its own. */
static void total_output(void **state)
{
	struct state *s = *state;
	int fd[8];
	char *text = malloc(3 * 1024 * 1024);
	json_t *p;

	for (unsigned i = 0; i < ELEMENTSOF(fd); i++)
		fd[i] = subscribe(s);
	memset(text, 'z', 3 * 1024 * 1024);
	p = json_pack("{s:s%}", "text", text, (size_t)3 * 1024 * 1024);
	varlink_stream_publish(s->server, 3, p);
	assert_in_range(varlink_stream_count(s->server, 3), 5, 6);
	turn_for(s, 20);
	assert_int_equal(varlink_client_count(s->server), varlink_stream_count(s->server, 3));
	for (unsigned i = 0; i < ELEMENTSOF(fd); i++)
		close(fd[i]);
	json_decref(p);
	free(text);
}

/* No descriptor for a new client: the loop rests instead of spinning, and the
 * client is served when there is one again. */
static void out_of_descriptors(void **state)
{
	struct state *s = *state;
	int waiting, spare[256], n = 0;
	struct rlimit old, low;
	struct rusage before, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	waiting = dial(s);
	low = old;
	low.rlim_cur = 128;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < 256 && (spare[n] = dup(waiting)) >= 0)
		n++;
	assert_in_range(n, 1, 255);
	getrusage(RUSAGE_SELF, &before);
	turn(s);
	event_base_loopexit(s->base, &(struct timeval){0, 500000});
	event_base_dispatch(s->base);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(varlink_client_count(s->server), 0);
	assert_in_range((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
				after.ru_utime.tv_usec - before.ru_utime.tv_usec +
				(after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
				after.ru_stime.tv_usec - before.ru_stime.tv_usec,
		0, 100000);
	while (n > 0)
		close(spare[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_works(s, waiting);
	close(waiting);
}

static void socket_path(void **state)
{
	struct state *s = *state;
	struct varlink_server *second = NULL;
	char path[200];
	int fd;

	/* the one that runs is left alone */
	assert_int_equal(varlink_server_new(s->base, s->path, &info, &second), -EADDRINUSE);
	assert_null(second);
	fd = dial(s);
	assert_works(s, fd);
	close(fd);

	/* a socket that a killed process left behind is replaced */
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(path, sizeof(path), "%s/stale", s->dir);
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), 0);
	/* and not removed by us when somebody else has put his own there */
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	varlink_server_free(second);
	second = NULL;
	assert_int_equal(access(path, F_OK), 0);
	/* something that is no socket is nobody's to remove */
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -EEXIST);
	assert_int_equal(unlink(path), 0);

	memset(path, 'x', 150);
	path[150] = '\0';
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/no/such", s->dir);
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -ENOENT);
	assert_null(second);
}

/* Numbers are printed short, and a reply is one message with one NUL. */
static void reply_text(void **state)
{
	size_t len = 0;
	json_t *p = json_pack("{s:f,s:s}", "some", 0.1, "path", "a\\b\n");
	char *text = varlink_reply_text(p, false, &len);

	(void)state;
	assert_string_equal(text, "{\"parameters\":{\"some\":0.1,\"path\":\"a\\\\b\\n\"}}");
	assert_int_equal(len, strlen(text) + 1);
	free(text);
	text = varlink_error_text("a.b", NULL, &len);
	assert_string_equal(text, "{\"error\":\"a.b\",\"parameters\":{}}");
	free(text);
	json_decref(p);
}

#define SERVER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reply_text),
		SERVER_TEST(service_interface),
		SERVER_TEST(bad_requests),
		SERVER_TEST(nesting),
		SERVER_TEST(request_size),
		SERVER_TEST(client_limit),
		SERVER_TEST(root_gets_in),
		SERVER_TEST(root_only),
		SERVER_TEST(half_request),
		SERVER_TEST(half_request_default),
		SERVER_TEST(oneway),
		SERVER_TEST(pipeline),
		SERVER_TEST(fairness),
		SERVER_TEST(slow_client),
		SERVER_TEST(reply_too_large),
		SERVER_TEST(stream),
		SERVER_TEST(slow_subscriber),
		SERVER_TEST(total_output),
		SERVER_TEST(out_of_descriptors),
		SERVER_TEST(socket_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
