/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-daemon.h>

static enum config_log_level max_level = LOG_LEVEL_INFO;

static const char *const prefix[] = {
	[LOG_LEVEL_ERR] = SD_ERR,
	[LOG_LEVEL_WARNING] = SD_WARNING,
	[LOG_LEVEL_INFO] = SD_INFO,
	[LOG_LEVEL_DEBUG] = SD_DEBUG,
};

void log_set_level(enum config_log_level level)
{
	max_level = level;
}

enum config_log_level log_get_level(void)
{
	return max_level;
}

void log_clean(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

void log_line(enum config_log_level level, const char *format, ...)
{
	char line[2048];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	log_clean(line);
	fprintf(stderr, "%s%s\n", getenv("JOURNAL_STREAM") ? prefix[level] : "", line);
}
