/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cleanup.h"

/* Files */

/* The file's name, kept as long as the configuration. NULL on ENOMEM. */
static const char *keep_name(struct config_loader *l, const char *path)
{
	char **files = reallocarray(l->c->files, l->c->n_files + 1, sizeof(*files));

	if (!files) {
		l->error = -ENOMEM;
		return NULL;
	}
	l->c->files = files;
	files[l->c->n_files] = strdup(path);
	if (!files[l->c->n_files]) {
		l->error = -ENOMEM;
		return NULL;
	}
	return files[l->c->n_files++];
}

/* The whole of a regular file of at most CONFIG_FILE_BYTES_MAX. */
static void read_fd(struct config_loader *l, int fd)
{
	_cleanup_free_ char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
	size_t length = 0;
	ssize_t n = 1;

	if (!text) {
		l->error = -ENOMEM;
		return;
	}
	while (n > 0 && length <= CONFIG_FILE_BYTES_MAX) {
		n = read(fd, text + length, CONFIG_FILE_BYTES_MAX + 1 - length);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			length += (size_t)n;
	}
	if (n < 0)
		config_fault(l, 0, "cannot be read: %s", strerror(errno));
	else if (length > CONFIG_FILE_BYTES_MAX)
		config_fault(l, 0,
			"is larger than 256 KiB; split it into drop-ins, or check that it is a "
			"configuration at all");
	else
		config_read_text(l, text, length);
}

_Static_assert(CONFIG_FILE_BYTES_MAX == 256 * 1024, "read_fd() names the number");

/* A missing file is a fault only when it is @wanted. */
static void read_file(struct config_loader *l, const char *path, bool wanted)
{
	/* Not blocking: a FIFO would hold up a reload for ever. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = errno;
	struct stat st;

	if (fd < 0 && error == ENOENT && !wanted)
		return;
	if (l->c->n_files == CONFIG_FILES_MAX) {
		l->file = path;
		config_fault(l, 0, "is one too many; at most %u files are read", CONFIG_FILES_MAX);
		return;
	}
	l->file = keep_name(l, path);
	if (!l->file)
		return;
	if (fd < 0 && error == ENOENT)
		config_fault(l, 0, "does not exist; create it, or correct the name or the link");
	else if (fd < 0)
		config_fault(l, 0, "cannot be opened: %s", strerror(error));
	else if (fstat(fd, &st) < 0)
		config_fault(l, 0, "cannot be examined: %s", strerror(errno));
	else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return; /* /dev/null: masked */
	else if (S_ISDIR(st.st_mode))
		config_fault(l, 0, "is a directory; a file is wanted here");
	else if (!S_ISREG(st.st_mode))
		config_fault(l, 0, "is not a regular file; put the configuration into one");
	else
		read_fd(l, fd);
}

struct dropin {
	char *path;
	const char *name; /* the end of path */
};

struct dropins {
	struct dropin *list;
	size_t n;
};

static void dropins_clear(struct dropins *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->list[i].path);
	free(d->list);
}

static int dropin_compare(const void *a, const void *b)
{
	return strcmp(((const struct dropin *)a)->name, ((const struct dropin *)b)->name);
}

static bool is_dropin(const char *name)
{
	size_t length = strlen(name);

	return *name != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

/* Adds a directory's drop-ins, except those whose names an earlier directory
 * had already. */
static void collect(struct config_loader *l, struct dropins *d, const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	size_t before = d->n;
	struct dirent *entry;

	if (!dir && errno == ENOENT)
		return;
	l->file = path;
	if (!dir) {
		config_fault(l, 0, "cannot be listed: %s", strerror(errno));
		return;
	}
	while ((entry = readdir(dir))) {
		struct dropin *grown;
		char *file;
		bool known = !is_dropin(entry->d_name);

		for (size_t i = 0; i < before && !known; i++)
			known = strcmp(d->list[i].name, entry->d_name) == 0;
		if (known)
			continue;
		if (d->n == CONFIG_FILES_MAX) {
			config_fault(l, 0, "holds too many drop-ins; at most %u files are read",
				CONFIG_FILES_MAX);
			return;
		}
		grown = reallocarray(d->list, d->n + 1, sizeof(*grown));
		if (grown)
			d->list = grown;
		if (!grown || asprintf(&file, "%s/%s", path, entry->d_name) < 0) {
			l->error = -ENOMEM;
			return;
		}
		grown[d->n++] = (struct dropin){file, file + strlen(path) + 1};
	}
}

/* @dirs: NULL-terminated, the one that overrides the others first. */
static void read_dropins(struct config_loader *l, char *const *dirs)
{
	struct dropins d = {NULL, 0};

	for (; *dirs && l->error == 0; dirs++)
		collect(l, &d, *dirs);
	if (d.n > 0)
		qsort(d.list, d.n, sizeof(d.list[0]), dropin_compare);
	for (size_t i = 0; i < d.n && l->error == 0; i++)
		read_file(l, d.list[i].path, true);
	dropins_clear(&d);
}

/* The whole */

/* The later of two places, in the order of the files. */
static const struct config_origin *later(
	const struct config_loader *l, const struct config_origin *a, const struct config_origin *b)
{
	if (!a->file || !b->file)
		return a->file ? a : b;
	if (a->file == b->file)
		return a->line > b->line ? a : b;
	for (unsigned i = 0; i < l->c->n_files; i++)
		if (l->c->files[i] == a->file)
			return b;
		else if (l->c->files[i] == b->file)
			return a;
	return a;
}

/* A controller's thresholds, when this row set one of them; otherwise another
 * row is to blame, if any. */
static void check_pressure(struct config_loader *l, size_t row, const struct config_controller *c)
{
	const char *section = row > 0 ? "Policy" : "Controller";
	const struct config_origin *high =
		config_origin_of(l, row, config_find_key(l, section, "PressureHigh"));
	const struct config_origin *low =
		config_origin_of(l, row, config_find_key(l, section, "PressureLow"));
	const struct config_origin *at = later(l, high, low);

	if (!at->file || high->bad || low->bad || c->pressure_low <= c->pressure_high)
		return;
	l->file = at->file;
	config_fault(l, at->line,
		"PressureLow (%g%%) is above PressureHigh (%g%%); lower the one or raise the "
		"other%s",
		c->pressure_low * 100, c->pressure_high * 100,
		row > 0 && (!high->file || !low->file)
			? " (what the policy does not set is taken from [Controller])"
			: "");
}

/* 1 when a > b on every machine. */
static bool size_exceeds(const struct config_size *a, const struct config_size *b)
{
	bool a_pmd = a->kind == SIZE_PMD || a->kind == SIZE_PMD_FRACTION;
	bool b_pmd = b->kind == SIZE_PMD || b->kind == SIZE_PMD_FRACTION;

	if (a->kind == SIZE_KB && b->kind == SIZE_KB)
		return a->value > b->value;
	return a_pmd && b_pmd && a->value < b->value;
}

static void check_policy(struct config_loader *l, size_t row)
{
	struct config_policy *p = &l->c->policies[row - 1];
	const struct config_origin *min =
		config_origin_of(l, row, config_find_key(l, "Policy", "MinSize"));
	const struct config_origin *max =
		config_origin_of(l, row, config_find_key(l, "Policy", "MaxSize"));
	const struct config_origin *at = later(l, min, max);

	for (size_t i = 0; i < l->n_keys; i++) {
		const struct config_key_info *key = &l->keys[i];
		size_t offset = key->field->offset;

		if (config_key_inherits(key) && !config_origin_of(l, row, key)->file)
			memcpy((char *)&p->controller + offset, (char *)&l->c->controller + offset,
				key->field->size);
	}
	l->file = p->file;
	if (p->n_match == 0 &&
		!config_origin_of(l, row, config_find_key(l, "Policy", "Match"))->bad)
		config_fault(l, p->line,
			"policy \"%s\" has no Match=, so it applies to nothing; name its "
			"cgroups, such as Match=system.slice/*",
			p->name);
	if (at->file && !min->bad && !max->bad && size_exceeds(&p->min_size, &p->max_size)) {
		l->file = at->file;
		config_fault(l, at->line,
			"MinSize is above MaxSize in policy \"%s\"; exchange them, or remove "
			"one",
			p->name);
	}
	check_pressure(l, row, &p->controller);
}

static int loader_init(struct config_loader *l, config_fault_fn fn, void *userdata)
{
	*l = (struct config_loader){.fn = fn, .userdata = userdata};
	l->keys = config_keys(&l->n_keys);
	l->origins = calloc(l->n_keys, sizeof(*l->origins));
	l->c = config_new_default();
	if (l->origins && l->c)
		return 0;
	free(l->origins);
	config_free(l->c);
	return -ENOMEM;
}

static int loader_finish(struct config_loader *l, struct config **ret)
{
	if (l->error == 0) {
		check_pressure(l, 0, &l->c->controller);
		for (size_t row = 1; row <= l->c->n_policies; row++)
			check_policy(l, row);
	}
	free(l->origins);
	if (l->error == 0 && l->n_faults == 0) {
		*ret = l->c;
		return 0;
	}
	config_free(l->c);
	return l->error < 0 ? l->error : -EINVAL;
}

static char *concat(const char *a, const char *b)
{
	char *s;

	return asprintf(&s, "%s%s", a, b) < 0 ? NULL : s;
}

int config_load(const char *explicit_file, const char *prefix, config_fault_fn fn, void *userdata,
	struct config **ret)
{
	static const char *const order[] = {
		"/etc/mthpd/mthpd.conf.d",
		"/run/mthpd/mthpd.conf.d",
		"/usr/lib/mthpd/mthpd.conf.d",
	};
	char *main_file;
	char *dirs[ELEMENTSOF(order) + 1] = {NULL};
	size_t n_dirs = explicit_file ? 1 : ELEMENTSOF(order);
	struct config_loader l;
	int r = loader_init(&l, fn, userdata);

	if (r < 0)
		return r;
	main_file = explicit_file ? strdup(explicit_file) : concat(prefix, "/etc/mthpd/mthpd.conf");
	if (!main_file)
		l.error = -ENOMEM;
	for (size_t i = 0; i < n_dirs; i++) {
		dirs[i] = explicit_file ? concat(explicit_file, ".d") : concat(prefix, order[i]);
		if (!dirs[i])
			l.error = -ENOMEM;
	}
	if (l.error == 0) {
		read_file(&l, main_file, explicit_file != NULL);
		read_dropins(&l, dirs);
	}
	r = loader_finish(&l, ret);
	free(main_file);
	for (size_t i = 0; i < n_dirs; i++)
		free(dirs[i]);
	return r;
}

int config_load_text(const char *name, const char *text, size_t len, config_fault_fn fn,
	void *userdata, struct config **ret)
{
	struct config_loader l;
	int r = loader_init(&l, fn, userdata);

	if (r < 0)
		return r;
	l.file = keep_name(&l, name);
	if (l.file && len > CONFIG_FILE_BYTES_MAX)
		config_fault(&l, 0, "is larger than 256 KiB");
	else if (l.file)
		config_read_text(&l, text, len);
	return loader_finish(&l, ret);
}
