/* A shared object that could speak to the launcher. */
const char* spinloom_live_pmi_user(void);
const char* spinloom_live_pmi_user(void) { return "PMI_FD"; }
