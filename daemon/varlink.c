/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "varlink.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cleanup.h"
#include "varlink-service.h"

#define NO_TOPIC (-1)
/* How long new clients wait in the kernel's queue after accept() has failed
 * for want of descriptors: asking at once again would be a busy loop. */
#define ACCEPT_PAUSE_SEC 1

struct varlink_client {
	struct varlink_server *server;
	unsigned slot; /* in the server's array */
	struct bufferevent *bev;
	struct event *again; /* takes the next request in the loop's next turn */
	struct event *half;  /* an unfinished request has been lying here for too long */
	uid_t uid;
	size_t scanned;	     /* bytes of the input known to hold no NUL */
	uint64_t turn;	     /* when it last sent a request, in the server's count */
	int topic;	     /* the stream that it subscribes to, or NO_TOPIC */
	int starting;	     /* set by varlink_stream_start() until the handler has returned */
	bool in_stream_call; /* a handler of a call with more is running for it */
	bool eof;	     /* it sends no more */
	bool closing;	     /* goes when its output has left */
	bool dead;	     /* goes in the loop's next turn; nothing else happens to it */
};

/* The dead keep their slots until the next turn, so there may be twice as many. */
#define SLOTS (2 * VARLINK_CLIENTS_MAX)

struct varlink_server {
	struct event_base *base;
	int fd;
	struct event *acceptor, *reaper, *resume_accept;
	const struct varlink_info *info;
	struct varlink_client *clients[SLOTS];
	unsigned n_clients; /* without the dead */
	uint64_t turn;
	struct timeval half, stall;
	struct sockaddr_un addr;
	dev_t dev;
	ino_t ino;
};

/* ---- clients: end of life ---- */

/* The client of a slot, if there is one alive. */
static struct varlink_client *client_at(const struct varlink_server *s, unsigned slot)
{
	return s->clients[slot] && !s->clients[slot]->dead ? s->clients[slot] : NULL;
}

/* Callbacks of libevent and handlers may still hold @c: it is only marked, and
 * freed by the reaper. */
static void client_drop(struct varlink_client *c)
{
	if (c->dead)
		return;
	c->dead = true;
	c->topic = NO_TOPIC;
	c->server->n_clients--;
	bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	event_del(c->again);
	event_del(c->half);
	event_active(c->server->reaper, EV_TIMEOUT, 0);
}

static void client_free(struct varlink_client *c)
{
	c->server->clients[c->slot] = NULL;
	if (c->bev)
		bufferevent_free(c->bev);
	if (c->again)
		event_free(c->again);
	if (c->half)
		event_free(c->half);
	free(c);
}

static void reap(evutil_socket_t fd, short what, void *userdata)
{
	struct varlink_server *s = userdata;

	(void)fd;
	(void)what;
	for (unsigned i = 0; i < SLOTS; i++) {
		if (s->clients[i] && s->clients[i]->dead)
			client_free(s->clients[i]);
	}
}

/* ---- output ---- */

static size_t client_pending(const struct varlink_client *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

/* Keeps the sum of all queues bounded at the expense of whoever fills it. */
static void enforce_total(struct varlink_server *s)
{
	struct varlink_client *worst = NULL;
	size_t total = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		struct varlink_client *c = client_at(s, i);

		if (!c)
			continue;
		total += client_pending(c);
		if (!worst || client_pending(c) > client_pending(worst))
			worst = c;
	}
	if (worst && total > VARLINK_OUTPUT_TOTAL_MAX)
		client_drop(worst);
}

static void free_text(const void *data, size_t len, void *extra)
{
	(void)data;
	(void)len;
	free(extra);
}

/* Queues @text, which is owned from here on. A client whose reply cannot be
 * made or queued is dropped: leaving one out would shift all later ones. */
static void client_send(struct varlink_client *c, char *text, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (c->dead || !text || client_pending(c) + len > VARLINK_OUTPUT_BYTES_MAX ||
		evbuffer_add_reference(out, text, len, free_text, text) < 0) {
		free(text);
		client_drop(c);
		return;
	}
	enforce_total(c->server);
}

static void client_send_error(struct varlink_client *c, const char *error, json_t *parameters)
{
	size_t len = 0;
	char *text = varlink_error_text(error, parameters, &len);

	json_decref(parameters);
	client_send(c, text, len);
}

static void send_fault(struct varlink_client *c, const char *parameter, const char *reason)
{
	client_send_error(c, VARLINK_SERVICE ".InvalidParameter",
		json_pack("{s:s,s:s}", "parameter", parameter, "reason", reason));
}

/* Ends the conversation after what is queued has left. */
static void client_finish(struct varlink_client *c)
{
	c->closing = true;
	event_del(c->again);
	event_del(c->half);
	bufferevent_disable(c->bev, EV_READ);
	if (client_pending(c) == 0)
		client_drop(c);
}

/* ---- methods ---- */

static int refuse(const char *error, const char *method, const char *reason, int err,
	json_t **ret_parameters, const char **ret_error)
{
	*ret_error = error;
	*ret_parameters = json_pack("{s:s,s:s*}", "method", method, "reason", reason);
	return err;
}

/* A parameter that the method does not take, misspelt perhaps; NULL = none. */
static const char *unknown_parameter(const struct varlink_method *m, const json_t *parameters)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)parameters, key, v)
	{
		if (m->takes && strcmp(m->takes, key) != 0)
			return key;
	}
	return NULL;
}

static int call_method(struct varlink_client *c, const struct varlink_request *r,
	json_t **ret_parameters, const char **ret_error)
{
	const struct varlink_info *info = c->server->info;
	const struct varlink_method *m = NULL;
	struct varlink_call call = {c, c->uid, r->more, r->parameters};
	const char *unknown;
	int err;

	for (size_t i = 0; i < info->n_methods && !m; i++) {
		if (!strcmp(info->methods[i].name, r->method))
			m = &info->methods[i];
	}
	if (!m)
		return varlink_service_call(info, r, ret_parameters, ret_error);
	if (!m->handler)
		return refuse(VARLINK_SERVICE ".MethodNotImplemented", r->method, NULL, -ENOSYS,
			ret_parameters, ret_error);
	if (m->root_only && c->uid != 0)
		return refuse(VARLINK_SERVICE ".PermissionDenied", r->method,
			"only root may call this", -EPERM, ret_parameters, ret_error);
	if (m->stream && !r->more)
		return refuse(VARLINK_SERVICE ".ExpectedMore", r->method, NULL, -EINVAL,
			ret_parameters, ret_error);
	unknown = unknown_parameter(m, r->parameters);
	if (unknown) {
		*ret_parameters = json_pack("{s:s,s:s}", "parameter", unknown, "reason",
			"this method has no such parameter");
		return -EINVAL;
	}
	c->in_stream_call = m->stream;
	err = m->handler(&call, info->userdata, ret_parameters, ret_error);
	c->in_stream_call = false;
	return err;
}

static void send_failure(struct varlink_client *c, int err, const char *error, json_t *parameters)
{
	char name[256];

	if (!error && (err == -EPERM || err == -EACCES))
		error = VARLINK_SERVICE ".PermissionDenied";
	else if (!error && err == -EINVAL)
		error = VARLINK_SERVICE ".InvalidParameter";
	if (!error) {
		snprintf(name, sizeof(name), "%s.Failed", c->server->info->interface);
		error = name;
		if (!parameters)
			parameters =
				json_pack("{s:i,s:s}", "errno", -err, "message", strerror(-err));
	}
	client_send_error(c, error, parameters);
}

static void send_reply(struct varlink_client *c, json_t *parameters)
{
	bool continues = c->starting != NO_TOPIC;
	size_t len = 0;
	char *text = varlink_reply_text(parameters, continues, &len);

	json_decref(parameters);
	if (text && len > VARLINK_OUTPUT_BYTES_MAX) {
		free(text);
		c->starting = NO_TOPIC;
		send_failure(c, -EMSGSIZE, NULL, NULL);
		return;
	}
	client_send(c, text, len);
}

static void answer(struct varlink_client *c, const struct varlink_request *r)
{
	json_t *parameters = NULL;
	const char *error = NULL;
	int err;

	c->starting = NO_TOPIC;
	err = call_method(c, r, &parameters, &error);
	if (c->dead || r->oneway) {
		json_decref(parameters);
		return;
	}
	if (err < 0) {
		send_failure(c, err, error, parameters);
		return;
	}
	send_reply(c, parameters);
	if (c->dead || c->starting == NO_TOPIC)
		return;
	c->topic = c->starting;
	if (c->eof)
		client_finish(c);
}

/* ---- input ---- */

static void take_request(struct varlink_client *c, size_t len)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)len + 1);
	struct varlink_request r;
	struct varlink_fault f;
	int err;

	err = bytes ? varlink_request_parse(bytes, len, &r, &f) : -ENOMEM;
	/* Drained before the call, and the parser has copied what it keeps. */
	evbuffer_drain(in, len + 1);
	c->scanned = 0;
	c->turn = ++c->server->turn;
	if (err == -EINVAL) {
		send_fault(c, f.parameter, f.reason);
	} else if (err < 0) {
		client_drop(c);
	} else {
		answer(c, &r);
		varlink_request_done(&r);
	}
}

/* Length of the first complete request in the input, or -1. */
static ev_ssize_t find_request(struct varlink_client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_ptr from, at;

	if (evbuffer_ptr_set(in, &from, c->scanned, EVBUFFER_PTR_SET) < 0)
		return -1;
	at = evbuffer_search(in, "", 1, &from);
	if (at.pos < 0)
		c->scanned = evbuffer_get_length(in);
	return at.pos;
}

/* Takes at most one request, if the output of the last one has left. Called
 * whenever one of these may have changed. */
static void client_pump(struct varlink_client *c)
{
	static const struct timeval now = {0, 0};
	size_t have = evbuffer_get_length(bufferevent_get_input(c->bev));
	ev_ssize_t len;

	if (c->dead || c->closing || c->topic != NO_TOPIC || client_pending(c) > 0)
		return;
	len = find_request(c);
	if (len > VARLINK_REQUEST_BYTES_MAX || (len < 0 && have > VARLINK_REQUEST_BYTES_MAX)) {
		send_fault(c, "request", "longer than 65536 bytes");
		client_finish(c);
	} else if (len >= 0) {
		event_del(c->half);
		take_request(c, (size_t)len);
		if (!c->dead)
			event_add(c->again, &now);
	} else if (c->eof) {
		client_finish(c);
	} else if (have > 0 && !event_pending(c->half, EV_TIMEOUT, NULL)) {
		/* Not renewed by further bytes: a trickle is cut off too. */
		event_add(c->half, &c->server->half);
	}
}

static void on_again(evutil_socket_t fd, short what, void *userdata)
{
	(void)fd;
	(void)what;
	client_pump(userdata);
}

static void on_half(evutil_socket_t fd, short what, void *userdata)
{
	struct varlink_client *c = userdata;

	(void)fd;
	(void)what;
	send_fault(c, "request", "not finished in time");
	client_finish(c);
}

static void on_read(struct bufferevent *bev, void *userdata)
{
	(void)bev;
	client_pump(userdata);
}

/* All output has left. */
static void on_written(struct bufferevent *bev, void *userdata)
{
	struct varlink_client *c = userdata;

	(void)bev;
	if (c->closing)
		client_drop(c);
	else
		client_pump(c);
}

/* Someone who only stops sending ("printf ... | nc -U") still gets the answers
 * to what was sent; a subscriber has nothing to send, so its end is the end. */
static void on_event(struct bufferevent *bev, short what, void *userdata)
{
	struct varlink_client *c = userdata;

	(void)bev;
	if (c->dead)
		return;
	if ((what & BEV_EVENT_EOF) && (what & BEV_EVENT_READING) && c->topic == NO_TOPIC) {
		c->eof = true;
		client_pump(c);
		return;
	}
	client_drop(c);
}

/* ---- arrivals ---- */

static void turn_away(const struct varlink_server *s, evutil_socket_t fd)
{
	char name[256];
	json_t *p = json_pack("{s:i}", "limit", VARLINK_CLIENTS_MAX);
	size_t len = 0;
	_cleanup_free_ char *text = NULL;

	snprintf(name, sizeof(name), "%s.TooManyClients", s->info->interface);
	text = varlink_error_text(name, p, &len);
	json_decref(p);
	/* A fresh socket takes these few bytes; if not, closing says it too. */
	if (text)
		(void)!send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

/* Whoever may open the socket could otherwise keep the administrator out. */
static bool make_room_for_root(struct varlink_server *s)
{
	struct varlink_client *oldest = NULL;

	for (unsigned i = 0; i < SLOTS; i++) {
		struct varlink_client *c = client_at(s, i);

		if (c && c->uid != 0 && (!oldest || c->turn < oldest->turn))
			oldest = c;
	}
	if (oldest)
		client_drop(oldest);
	return oldest != NULL;
}

/* Takes @fd over. Without memory the caller sees the end of the connection. */
static void client_new(struct varlink_server *s, evutil_socket_t fd, uid_t uid)
{
	struct varlink_client *c;
	unsigned slot = 0;

	while (slot < SLOTS && s->clients[slot])
		slot++;
	c = slot < SLOTS ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	c->server = s;
	c->slot = slot;
	s->clients[slot] = c;
	c->uid = uid;
	c->topic = c->starting = NO_TOPIC;
	c->turn = ++s->turn;
	c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->again = evtimer_new(s->base, on_again, c);
	c->half = evtimer_new(s->base, on_half, c);
	if (!c->bev || !c->again || !c->half) {
		bool owned = c->bev != NULL;

		client_free(c);
		if (!owned)
			close(fd);
		return;
	}
	s->n_clients++;
	bufferevent_setcb(c->bev, on_read, on_written, on_event, c);
	/* Room for the longest request and its NUL; more stays in the kernel. */
	bufferevent_setwatermark(c->bev, EV_READ, 0, VARLINK_REQUEST_BYTES_MAX + 1);
	bufferevent_set_timeouts(c->bev, NULL, &s->stall);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static void client_arrived(struct varlink_server *s, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		close(fd);
		return;
	}
	if (s->n_clients >= VARLINK_CLIENTS_MAX && (peer.uid != 0 || !make_room_for_root(s))) {
		turn_away(s, fd);
		return;
	}
	client_new(s, fd, peer.uid);
}

/* One per turn of the loop: somebody who connects without pause must not keep
 * the loop here. */
static void on_acceptable(evutil_socket_t listener, short what, void *userdata)
{
	static const struct timeval pause = {ACCEPT_PAUSE_SEC, 0};
	struct varlink_server *s = userdata;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)what;
	if (fd >= 0) {
		client_arrived(s, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		event_del(s->acceptor);
		event_add(s->resume_accept, &pause);
	}
}

static void on_resume_accept(evutil_socket_t fd, short what, void *userdata)
{
	struct varlink_server *s = userdata;

	(void)fd;
	(void)what;
	event_add(s->acceptor, NULL);
}

/* ---- the listening socket ---- */

/* Removes a socket that nobody listens on. */
static int remove_stale(const struct sockaddr_un *addr)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(addr->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int listen_at(const char *path, struct varlink_server *s)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	s->addr.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(s->addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(s->addr.sun_path, path, strlen(path) + 1);
	r = remove_stale(&s->addr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&s->addr, sizeof(s->addr)) < 0)
		return -errno;
	/* Before listen(), so that nobody meets another mode; who may do what
	 * is decided per call. */
	if (chmod(path, 0666) < 0 || lstat(path, &st) < 0 || listen(fd, SOMAXCONN) < 0) {
		r = -errno;
		unlink(path);
		return r;
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return take_fd(&fd);
}

int varlink_server_new(struct event_base *base, const char *path, const struct varlink_info *info,
	struct varlink_server **ret)
{
	struct varlink_server *s = calloc(1, sizeof(*s));
	int fd;

	if (!s)
		return -ENOMEM;
	s->base = base;
	s->info = info;
	s->half.tv_sec = VARLINK_HALF_REQUEST_SEC;
	s->stall.tv_sec = VARLINK_STALL_SEC;
	fd = listen_at(path, s);
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->fd = fd;
	s->acceptor = event_new(base, fd, EV_READ | EV_PERSIST, on_acceptable, s);
	s->reaper = event_new(base, -1, 0, reap, s);
	s->resume_accept = evtimer_new(base, on_resume_accept, s);
	if (!s->acceptor || !s->reaper || !s->resume_accept || event_add(s->acceptor, NULL) < 0) {
		varlink_server_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void varlink_server_free(struct varlink_server *s)
{
	struct stat st;

	if (!s)
		return;
	for (unsigned i = 0; i < SLOTS; i++) {
		if (s->clients[i])
			client_free(s->clients[i]);
	}
	if (s->acceptor)
		event_free(s->acceptor);
	if (s->reaper)
		event_free(s->reaper);
	if (s->resume_accept)
		event_free(s->resume_accept);
	if (lstat(s->addr.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->addr.sun_path);
	close(s->fd);
	free(s);
}

void varlink_server_set_timeouts(
	struct varlink_server *s, unsigned half_request_msec, unsigned stall_msec)
{
	s->half.tv_sec = half_request_msec / 1000;
	s->half.tv_usec = half_request_msec % 1000 * 1000;
	s->stall.tv_sec = stall_msec / 1000;
	s->stall.tv_usec = stall_msec % 1000 * 1000;
}

/* ---- streams ---- */

int varlink_stream_start(struct varlink_client *client, unsigned topic)
{
	if (!client->in_stream_call || topic > INT16_MAX)
		return -EINVAL;
	client->starting = (int)topic;
	return 0;
}

void varlink_stream_publish(struct varlink_server *s, unsigned topic, json_t *parameters)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	if (varlink_stream_count(s, topic) == 0)
		return;
	text = varlink_reply_text(parameters, true, &len);
	for (unsigned i = 0; i < SLOTS; i++) {
		struct varlink_client *c = client_at(s, i);

		if (c && c->topic == (int)topic)
			client_send(c, text ? strdup(text) : NULL, len);
	}
}

unsigned varlink_stream_count(const struct varlink_server *s, unsigned topic)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		const struct varlink_client *c = client_at(s, i);

		n += c && c->topic == (int)topic;
	}
	return n;
}

unsigned varlink_client_count(const struct varlink_server *s)
{
	return s->n_clients;
}
