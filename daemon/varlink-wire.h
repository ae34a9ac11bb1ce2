/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of the varlink protocol, without sockets: one request's bytes to a
 * checked structure, and replies to bytes. Called by varlink.c and by its fuzz
 * target. Never does I/O and never trusts its input: size, nesting, UTF-8,
 * types and unknown keys are checked before a handler sees anything.
 */
#ifndef MTHPD_VARLINK_WIRE_H
#define MTHPD_VARLINK_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Objects and arrays inside each other. The deepest parameters of org.mthpd1
 * need 3; the bound keeps a request from growing the stack of jansson's
 * recursive parser. */
#define VARLINK_DEPTH_MAX 16

/* Names that are looked up or echoed in an error are no longer than this. */
#define VARLINK_METHOD_BYTES_MAX 255

struct varlink_request {
	json_t *root;             /* owns what the two below point at */
	const char *method;       /* 1..VARLINK_METHOD_BYTES_MAX bytes of A-Z a-z 0-9 . - */
	json_t *parameters;       /* an object, never NULL */
	bool more, oneway;
};

/* Why a request was refused: both are static text. */
struct varlink_fault {
	const char *parameter; /* the key at fault, "request" for the message as a whole */
	const char *reason;
};

/* Parses the @len bytes at @buf (without the ending NUL). Returns 0 with *ret
 * filled (varlink_request_done() it), -EINVAL with *ret_fault filled, or
 * -ENOMEM. */
int varlink_request_parse(
	const char *buf, size_t len, struct varlink_request *ret, struct varlink_fault *ret_fault);
void varlink_request_done(struct varlink_request *r);

/* A message as bytes that end with their NUL, to be freed by the caller; the
 * length (NUL included) goes to *ret_len. @parameters is borrowed and may be
 * NULL ({}). Real numbers are printed with 9 significant digits. NULL on
 * ENOMEM. */
char *varlink_reply_text(json_t *parameters, bool continues, size_t *ret_len);
char *varlink_error_text(const char *error, json_t *parameters, size_t *ret_len);

#endif
