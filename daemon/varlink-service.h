/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.varlink.service, the interface that every varlink service has, and the
 * errors for what no interface has. Called by varlink.c for each method that is
 * not in the service's own table. Never touches a client.
 */
#ifndef MTHPD_VARLINK_SERVICE_H
#define MTHPD_VARLINK_SERVICE_H

#include "varlink.h"
#include "varlink-wire.h"

#define VARLINK_SERVICE "org.varlink.service"

/* As a varlink_handler: 0 with *ret_parameters, or -EINVAL or -ENOENT with
 * *ret_parameters and *ret_error saying why. */
int varlink_service_call(const struct varlink_info *info, const struct varlink_request *r,
	json_t **ret_parameters, const char **ret_error);

#endif
