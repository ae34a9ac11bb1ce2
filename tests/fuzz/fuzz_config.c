/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Any bytes as a configuration: refused with at least one fault or accepted
 * within all stated bounds, and every message is printable text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config-internal.h"

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	(void)file;
	(void)line;
	if (!*message || strchr(message, '\n') || !config_text_valid(message))
		abort();
	++*(unsigned *)userdata;
}

static void check_controller(const struct config_controller *c)
{
	if (c->pressure_low < 0 || c->pressure_low > c->pressure_high || c->pressure_high > 1 ||
		c->hold_min_usec < 1000000 || c->hold_min_usec > c->hold_max_usec ||
		c->settle_min_usec > c->settle_max_usec || c->max_changes_per_hour < 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *c = NULL;
	unsigned faults = 0;
	int r = config_load_text("fuzz.conf", (const char *)data, size, on_fault, &faults, &c);

	if (r != (faults > 0 ? -EINVAL : 0) || !c != (r < 0))
		abort();
	if (!c)
		return 0;
	check_controller(&c->controller);
	for (unsigned i = 0; i < c->n_policies; i++) {
		if (c->policies[i].n_match == 0 || c->policies[i].n_match > CONFIG_MATCH_MAX)
			abort();
		check_controller(&c->policies[i].controller);
	}
	(void)config_policy_for(c, "system.slice/nginx.service", NULL);
	config_free(c);
	return 0;
}
