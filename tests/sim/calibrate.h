/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is the toy plant worth anything? The fixed work that was measured on a stock
 * Linux 6.12 (64 MiB limit, zram, guest time counted in instructions), done by
 * the plant under the same fixed settings, side by side.
 */
#ifndef MTHPD_SIM_CALIBRATE_H
#define MTHPD_SIM_CALIBRATE_H

#include <stdbool.h>

/* Prints the table. True when the settings of each pattern come out in the
 * measured order (settings that were measured within 5 % of each other may
 * change places) and `never` wins or loses as it was measured. */
bool calibrate(bool print);

#endif
