/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verb plot of mthpctl(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl.h"
#include "trace-plot.h"

/* A file beside @output with the mode that fopen() would give; its name in *ret_tmp. */
static int open_beside(const char *output, char **ret_tmp)
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	if (asprintf(ret_tmp, "%s.XXXXXX", output) < 0)
		return -ENOMEM;
	fd = mkostemp(*ret_tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0666 & ~mask);
	return fd;
}

/* Whole or not at all where a file is or comes to be; devices, pipes and links
 * are written to, never replaced. */
static int write_picture(const struct ctl *ctl, const struct plot *p)
{
	_cleanup_free_ char *tmp = NULL;
	struct stat st;
	bool through = lstat(ctl->output, &st) == 0 && !S_ISREG(st.st_mode);
	int r, fd = through ? open(ctl->output, O_WRONLY | O_TRUNC | O_CLOEXEC) : open_beside(ctl->output, &tmp);
	FILE *f;

	if (fd < 0)
		return through ? -errno : fd;
	f = fdopen(fd, "w");
	if (!f) {
		r = -errno;
		close(fd);
	} else {
		r = plot_draw(p, f);
		if (fflush(f) != 0 || ferror(f))
			r = -errno;
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	if (r == 0 && !through && rename(tmp, ctl->output) < 0)
		r = -errno;
	if (r < 0 && !through)
		unlink(tmp);
	return r;
}

int ctl_plot(const struct ctl *ctl)
{
	_cleanup_fclose_ FILE *f = fopen(ctl->args[0], "re");
	struct trace_why why;
	struct plot *p;
	int r;

	if (!f) {
		ctl_complain(ctl, "%s: %s", ctl->args[0], strerror(errno));
		return CTL_NO;
	}
	r = plot_read(f, &p, &why);
	if (r < 0)
		return ctl_complain_trace(ctl, ctl->args[0], r, &why);
	r = write_picture(ctl, p);
	plot_free(p);
	if (r < 0) {
		ctl_complain(ctl, "%s: %s", ctl->output, strerror(-r));
		return CTL_NO;
	}
	return CTL_OK;
}
