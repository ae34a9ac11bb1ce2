/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "metrics-http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>

#include "cleanup.h"
#include "metrics.h"
#include "parse.h"

/* A connection, known by its descriptor as long as the same socket is behind it:
 * evhttp does not tell when one ends. */
struct connection {
	int fd;
	ino_t ino;
};

struct metrics_http {
	struct event_base *base;
	struct evhttp *http;
	metrics_http_fn fn;
	void *userdata;
	struct connection connections[METRICS_CONNECTIONS_MAX]; /* oldest first */
	unsigned n_connections;
	char *path; /* of the unix socket, NULL = TCP */
	dev_t dev;
	ino_t ino;
};

/* ---- requests ---- */

static void free_text(const void *data, size_t len, void *userdata)
{
	(void)data;
	(void)len;
	free(userdata);
}

static void answer(struct evhttp_request *request, const char *type, char *text)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer *body = evbuffer_new();
	size_t len = text ? strlen(text) : 0;
	char digits[24];

	if (!text || !body || evbuffer_add_reference(body, text, len, free_text, text) < 0) {
		free(text);
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
	} else {
		evhttp_add_header(headers, "Content-Type", type);
		snprintf(digits, sizeof(digits), "%zu", len);
		evhttp_add_header(headers, "Content-Length", digits);
		/* evhttp would send it all the same. */
		if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
			evbuffer_drain(body, len);
		evhttp_send_reply(request, HTTP_OK, "OK", body);
	}
	if (body)
		evbuffer_free(body);
}

static void on_metrics(struct evhttp_request *request, void *userdata)
{
	struct metrics_http *h = userdata;

	answer(request, "text/plain; version=0.0.4; charset=utf-8", h->fn(h->userdata));
}

static void on_other(struct evhttp_request *request, void *userdata)
{
	const char *uri = evhttp_request_get_uri(request);

	(void)userdata;
	if (uri && !strcmp(uri, "/"))
		answer(request, "text/plain; charset=utf-8", strdup("mthpd: see /metrics\n"));
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

/* ---- connections ---- */

static ino_t socket_at(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

static void forget_ended(struct metrics_http *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->n_connections; i++)
		if (socket_at(h->connections[i].fd) == h->connections[i].ino)
			h->connections[n++] = h->connections[i];
	h->n_connections = n;
}

static void note_connection(struct metrics_http *h, int fd)
{
	struct connection c = {.fd = fd, .ino = socket_at(fd)};

	if (!c.ino)
		return;
	forget_ended(h);
	if (h->n_connections == METRICS_CONNECTIONS_MAX) {
		/* evhttp sees its end and closes it. */
		shutdown(h->connections[0].fd, SHUT_RDWR);
		memmove(h->connections, h->connections + 1, --h->n_connections * sizeof(c));
	}
	h->connections[h->n_connections++] = c;
}

struct newcomer {
	struct metrics_http *http;
	struct bufferevent *bev;
};

static void on_newcomer(evutil_socket_t fd, short what, void *userdata)
{
	struct newcomer *n = userdata;

	(void)fd;
	(void)what;
	note_connection(n->http, bufferevent_getfd(n->bev));
	free(n);
}

/* A connection has come; its descriptor is set when this has returned, and
 * nothing reads from it before the next turn of the loop. */
static struct bufferevent *on_connection(struct event_base *base, void *userdata)
{
	static const struct timeval at_once = {0};
	struct newcomer *n = malloc(sizeof(*n));
	struct bufferevent *bev = n ? bufferevent_socket_new(base, -1, 0) : NULL;

	if (bev) {
		*n = (struct newcomer){.http = userdata, .bev = bev};
		if (event_base_once(base, -1, EV_TIMEOUT, on_newcomer, n, &at_once) == 0)
			return bev;
	}
	free(n);
	return bev;
}

/* ---- listening ---- */

static int remove_stale(const struct sockaddr_un *a)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno == EAGAIN)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(a->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int bind_path(struct metrics_http *h, const char *path, int *ret_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, strlen(path) + 1);
	r = remove_stale(&a);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	h->path = strdup(path);
	/* What it tells, everybody may read by mthpctl too. */
	if (!h->path || chmod(path, 0666) < 0 || lstat(path, &st) < 0) {
		r = h->path ? -errno : -ENOMEM;
		unlink(path);
		return r;
	}
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int bind_port(const char *listen, int *ret_fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *colon = strrchr(listen, ':');
	_cleanup_close_ int fd = -1;
	uint64_t port;
	int one = 1;

	if (!colon || parse_u64(colon + 1, &port) < 0 || port < 1 || port > 65535)
		return -EINVAL;
	a.sin_port = htons((uint16_t)port);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int start_http(struct metrics_http *h)
{
	h->http = evhttp_new(h->base);
	if (!h->http)
		return -ENOMEM;
	evhttp_set_allowed_methods(h->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(h->http, METRICS_HEADER_BYTES_MAX);
	evhttp_set_max_body_size(h->http, 0);
	evhttp_set_timeout(h->http, METRICS_TIMEOUT_SEC);
	evhttp_set_bevcb(h->http, on_connection, h);
	evhttp_set_gencb(h->http, on_other, h);
	return evhttp_set_cb(h->http, "/metrics", on_metrics, h) == 0 ? 0 : -ENOMEM;
}

int metrics_http_new(struct event_base *base, const char *listen_at, metrics_http_fn fn, void *userdata,
	struct metrics_http **ret)
{
	struct metrics_http *h = calloc(1, sizeof(*h));
	_cleanup_close_ int fd = -1;
	int r;

	if (!h)
		return -ENOMEM;
	*h = (struct metrics_http){.base = base, .fn = fn, .userdata = userdata};
	r = *listen_at == '/' ? bind_path(h, listen_at, &fd) : bind_port(listen_at, &fd);
	if (r == 0)
		r = start_http(h);
	if (r == 0 && listen(fd, SOMAXCONN) < 0)
		r = -errno;
	if (r == 0 && evhttp_accept_socket(h->http, fd) < 0)
		r = -ENOMEM;
	if (r < 0) {
		metrics_http_free(h);
		return r;
	}
	take_fd(&fd); /* evhttp's now */
	*ret = h;
	return 0;
}

void metrics_http_free(struct metrics_http *h)
{
	struct stat st;

	if (!h)
		return;
	if (h->http)
		evhttp_free(h->http);
	if (h->path && lstat(h->path, &st) == 0 && st.st_dev == h->dev && st.st_ino == h->ino)
		unlink(h->path);
	free(h->path);
	free(h);
}
