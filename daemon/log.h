/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines for people: to stderr (with the journal's level prefix when stderr is
 * the journal), filtered by LogLevel. Called by every file in daemon/; the
 * library below never logs. A cause that repeats is logged by its owner once.
 */
#ifndef MTHPD_LOG_H
#define MTHPD_LOG_H

#include "config.h"

void log_set_level(enum config_log_level level);
enum config_log_level log_get_level(void);
void log_line(enum config_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Names in a line are whatever somebody called a cgroup: no control bytes. */
void log_clean(char *text);

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
