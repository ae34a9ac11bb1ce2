/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A varlink server on the libevent loop: a unix socket, JSON objects ended by
 * NUL, replies in the order of the calls. It knows the wire and its limits
 * (64 KiB per request, 64 clients, bounded output, bounded depth, an idle half
 * request is cut off), org.varlink.service, and a table of methods; what the
 * methods mean is the business of their handlers (service.c). Never blocks:
 * a slow client is dropped and nobody else waits. The text of requests and
 * replies is varlink-wire.h's.
 */
#ifndef MTHPD_VARLINK_H
#define MTHPD_VARLINK_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#define VARLINK_REQUEST_BYTES_MAX (64 * 1024)
#define VARLINK_CLIENTS_MAX 64
#define VARLINK_OUTPUT_BYTES_MAX (4 * 1024 * 1024)
#define VARLINK_HALF_REQUEST_SEC 10
/* Over all clients; beyond it the one with the longest queue is dropped. */
#define VARLINK_OUTPUT_TOTAL_MAX (16 * 1024 * 1024)
/* A client that takes nothing of its output for so long is dropped. */
#define VARLINK_STALL_SEC 30

struct varlink_server;
struct varlink_client;

struct varlink_call {
	struct varlink_client *client; /* for varlink_stream_start(), valid during the call */
	uid_t uid;                     /* of the peer, SO_PEERCRED */
	bool more;                     /* the caller asked for a stream */
	const json_t *parameters;      /* an object, never NULL */
};

/* Fills *ret_parameters (a new reference; untouched = {}) and returns 0; or
 * returns a negative errno and, when useful, sets *ret_error to a full varlink
 * error name with static lifetime ("org.mthpd1.NotFound") and *ret_parameters
 * to an object that says what and why. Without *ret_error -EPERM and -EACCES
 * become org.varlink.service.PermissionDenied, -EINVAL InvalidParameter, all
 * others INTERFACE.Failed (errno: int, message: string). */
typedef int (*varlink_handler)(const struct varlink_call *call, void *userdata,
	json_t **ret_parameters, const char **ret_error);

struct varlink_method {
	const char *name;  /* "org.mthpd1.GetStatus" */
	bool root_only;    /* refused with org.varlink.service.PermissionDenied to others */
	bool stream;       /* answers only calls with "more"; others get ExpectedMore */
	const char *takes; /* its only parameter, "" = none: others get InvalidParameter; NULL = any */
	varlink_handler handler; /* NULL: MethodNotImplemented */
};

struct varlink_info {
	const char *vendor, *product, *version, *url;
	const char *interface;             /* "org.mthpd1" */
	const char *interface_description; /* the .varlink text */
	const struct varlink_method *methods;
	size_t n_methods;
	void *userdata;
};

/* Listens at @path with mode 0666 (a stale socket is replaced, one that
 * answers gives -EADDRINUSE, something else that stands there -EEXIST, a path
 * of more than 107 bytes -ENAMETOOLONG). Returns 0 or -errno. @info must
 * outlive it.
 *
 * Requests of one client are answered one after the other, the next one when
 * the reply to the last has left, one per turn of the loop: a client that
 * sends much or reads slowly waits for itself alone. The 65th client gets the
 * error INTERFACE.TooManyClients (limit: int) and is closed, but root is let
 * in by dropping the other user's client that has been quiet for longest. */
int varlink_server_new(struct event_base *base, const char *path, const struct varlink_info *info,
	struct varlink_server **ret);
/* Closes everything and removes the socket if it is still the one made here. */
void varlink_server_free(struct varlink_server *s);

/* Other times than VARLINK_HALF_REQUEST_SEC and VARLINK_STALL_SEC, for clients
 * that connect from now on (the tests do not wait for half a minute). */
void varlink_server_set_timeouts(struct varlink_server *s, unsigned half_request_msec, unsigned stall_msec);

/* From a handler of a call with more = true: keeps the client as a subscriber
 * of @topic (small integer chosen by the service); the handler's own reply is
 * then sent with continues: true. -EINVAL outside of such a call. */
int varlink_stream_start(struct varlink_client *client, unsigned topic);
/* Sends @parameters (borrowed) to all subscribers of @topic with continues:
 * true. A subscriber whose queue is full is dropped. */
void varlink_stream_publish(struct varlink_server *s, unsigned topic, json_t *parameters);
unsigned varlink_stream_count(const struct varlink_server *s, unsigned topic);
unsigned varlink_client_count(const struct varlink_server *s);

#endif
