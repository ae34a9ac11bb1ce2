/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <stdlib.h>
#include <string.h>

#include "glob.h"

static int set_defaults(const char *section, void *base)
{
	struct config_why why;

	size_t n;
	const struct config_key_info *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].section, section) == 0 && keys[i].default_text) {
			int r = config_key_set(&keys[i], "", base, &why);

			if (r < 0)
				return r;
		}
	return 0;
}

struct config *config_new_default(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (c && set_defaults("Daemon", c) == 0 && set_defaults("Limits", c) == 0 &&
		set_defaults("Controller", &c->controller) == 0 && set_defaults("Metrics", c) == 0)
		return c;
	config_free(c);
	return NULL;
}

void config_policy_clear_match(struct config_policy *p)
{
	while (p->n_match > 0)
		free(p->match[--p->n_match]);
}

struct config_policy *config_add_policy(
	struct config *c, const char *name, const char *file, unsigned line)
{
	struct config_policy *p = reallocarray(c->policies, c->n_policies + 1, sizeof(*p));

	if (!p)
		return NULL;
	c->policies = p;
	p += c->n_policies;
	*p = (struct config_policy){.name = strdup(name), .file = file, .line = line};
	if (!p->name || set_defaults("Policy", p) < 0) {
		free(p->name);
		return NULL;
	}
	c->n_policies++;
	return p;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n_policies; i++) {
		config_policy_clear_match(&c->policies[i]);
		free(c->policies[i].name);
	}
	for (unsigned i = 0; i < c->n_files; i++)
		free(c->files[i]);
	free(c->policies);
	free(c->files);
	free(c->metrics_listen);
	free(c);
}

const struct config_policy *config_policy_for(
	const struct config *c, const char *path, const char **ret_pattern)
{
	const struct config_policy *best = NULL;
	const char *pattern = NULL;
	int score = 0;

	for (unsigned i = 0; i < c->n_policies; i++) {
		const struct config_policy *p = &c->policies[i];

		for (unsigned j = 0; j < p->n_match; j++) {
			int s = glob_specificity(p->match[j]);

			if ((best && s < score) || !glob_match(p->match[j], path))
				continue;
			best = p;
			pattern = p->match[j];
			score = s;
		}
	}
	if (best && ret_pattern)
		*ret_pattern = pattern;
	return best;
}
