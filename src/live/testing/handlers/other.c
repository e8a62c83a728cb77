/* A shared object without handlers. */
int spinloom_live_other(void);
int spinloom_live_other(void) { return 1; }
