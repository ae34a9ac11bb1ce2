/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A varlink server on the libevent loop: a unix socket, JSON objects ended by
 * NUL, replies in the order of the calls. It knows the wire and its limits
 * (64 KiB per request, 64 clients, bounded output, bounded depth, an idle half
 * request is cut off), org.varlink.service, and a table of methods; what the
 * methods mean is the business of their handlers (service.c). Never blocks:
 * a slow client is dropped and nobody else waits.
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

struct varlink_server;
struct varlink_client;

struct varlink_call {
	struct varlink_client *client; /* for varlink_stream_start(), valid during the call */
	uid_t uid;                     /* of the peer, SO_PEERCRED */
	bool more;                     /* the caller asked for a stream */
	const json_t *parameters;      /* an object, never NULL */
};

/* Fills *ret_parameters (a new reference) and returns 0; or returns -EPERM,
 * -EINVAL, -ENOENT ... after setting *ret_error to a full varlink error name
 * ("org.mthpd1.NotFound") and, when useful, *ret_parameters to an object that
 * says what and why. */
typedef int (*varlink_handler)(const struct varlink_call *call, void *userdata,
	json_t **ret_parameters, const char **ret_error);

struct varlink_method {
	const char *name;  /* "org.mthpd1.GetStatus" */
	bool root_only;    /* refused with org.varlink.service.PermissionDenied to others */
	bool stream;       /* may be called with "more" */
	varlink_handler handler;
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
 * answers gives -EADDRINUSE). Returns 0 or -errno. @info must outlive it. */
int varlink_server_new(struct event_base *base, const char *path, const struct varlink_info *info,
	struct varlink_server **ret);
void varlink_server_free(struct varlink_server *s);

/* From a handler of a call with more = true: keeps the client as a subscriber
 * of @topic (small integer chosen by the service); the handler's own reply is
 * then sent with continues: true. */
int varlink_stream_start(struct varlink_client *client, unsigned topic);
/* Sends @parameters to all subscribers of @topic with continues: true. */
void varlink_stream_publish(struct varlink_server *s, unsigned topic, json_t *parameters);
unsigned varlink_stream_count(const struct varlink_server *s, unsigned topic);

#endif
