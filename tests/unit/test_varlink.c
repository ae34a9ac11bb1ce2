/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The varlink server: what is asked and answered, and who may. */
#include "varlink_world.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
