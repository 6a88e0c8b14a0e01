/* A CUDA driver that says that it is older than the runtime of this build needs, and offers nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
int cuDriverGetVersion(int *version);
int cuInit(unsigned flags);

int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}
