#define _GNU_SOURCE
#include "CPostgres.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

// Values of libpq's enumerations, which are part of its binary interface.
#define CONNECTION_OK 0
#define PGRES_COMMAND_OK 1
#define PGRES_TUPLES_OK 2

typedef confab_pq_connection connection;
typedef confab_pq_result result;

// What PQconninfoParse returns. Only freed.
typedef struct options options;

static struct {
    connection *(*connectdbParams)(const char *const *, const char *const *, int);
    void (*finish)(connection *);
    int (*status)(const connection *);
    char *(*errorMessage)(const connection *);
    const char *(*parameterStatus)(const connection *, const char *);
    int (*serverVersion)(const connection *);
    int (*socket)(const connection *);
    int (*setnonblocking)(connection *, int);
    void *(*setNoticeProcessor)(connection *, void (*)(void *, const char *), void *);
    int (*sendQuery)(connection *, const char *);
    int (*sendPrepare)(connection *, const char *, const char *, int, const unsigned *);
    int (*sendQueryPrepared)(
        connection *, const char *, int, const char *const *, const int *, const int *, int);
    int (*flush)(connection *);
    int (*consumeInput)(connection *);
    int (*isBusy)(connection *);
    result *(*getResult)(connection *);
    int (*resultStatus)(const result *);
    char *(*resultErrorField)(const result *, int);
    int (*ntuples)(const result *);
    int (*nfields)(const result *);
    char *(*fname)(const result *, int);
    unsigned (*ftype)(const result *, int);
    char *(*getvalue)(const result *, int, int);
    int (*getlength)(const result *, int, int);
    int (*getisnull)(const result *, int, int);
    char *(*cmdTuples)(result *);
    void (*clear)(result *);
    options *(*conninfoParse)(const char *, char **);
    void (*conninfoFree)(options *);
    void (*freemem)(void *);
} pq;

static int is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#define FIND(name) find(library, "PQ" #name, &pq.name)

static void load(void) {
#ifdef __APPLE__
    const char *const names[] = {
        "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib"};
#else
    const char *const names[] = {"libpq.so.5"};
#endif
    void *library = NULL;
    for (size_t index = 0; library == NULL && index < sizeof names / sizeof *names; index++)
        library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    // The library stays loaded: its functions are used until the process ends.
    is_loaded = FIND(connectdbParams) && FIND(finish) && FIND(status) && FIND(errorMessage) && FIND(parameterStatus)
        && FIND(serverVersion) && FIND(socket) && FIND(setnonblocking) && FIND(setNoticeProcessor) && FIND(sendQuery)
        && FIND(sendPrepare) && FIND(sendQueryPrepared) && FIND(flush) && FIND(consumeInput) && FIND(isBusy)
        && FIND(getResult) && FIND(resultStatus) && FIND(resultErrorField) && FIND(ntuples) && FIND(nfields)
        && FIND(fname) && FIND(ftype) && FIND(getvalue) && FIND(getlength) && FIND(getisnull) && FIND(cmdTuples)
        && FIND(clear) && FIND(conninfoParse) && FIND(conninfoFree) && FIND(freemem);
}

int confab_pq_load(void) {
    pthread_once(&once, load);
    return is_loaded;
}

int confab_pq_is_valid(const char *text) {
    char *message = NULL;
    options *parsed = pq.conninfoParse(text, &message);
    if (message != NULL) pq.freemem(message);
    if (parsed == NULL) return 0;
    pq.conninfoFree(parsed);
    return 1;
}

// libpq prints notices to standard error by default, where they would be mixed with the log.
static void ignore(void *context, const char *message) {
    (void)context;
    (void)message;
}

confab_pq_connection *confab_pq_connect(const char *const *keywords, const char *const *values) {
    connection *made = pq.connectdbParams(keywords, values, 1);
    if (made == NULL) return NULL;
    pq.setNoticeProcessor(made, ignore, NULL);
    // With blocking sends, a server that stops reading would block the thread without a limit.
    if (pq.status(made) == CONNECTION_OK) pq.setnonblocking(made, 1);
    return made;
}

void confab_pq_finish(confab_pq_connection *c) { pq.finish(c); }
int confab_pq_is_connected(const confab_pq_connection *c) { return pq.status(c) == CONNECTION_OK; }
const char *confab_pq_error(const confab_pq_connection *c) { return pq.errorMessage(c); }
const char *confab_pq_parameter(const confab_pq_connection *c, const char *name) { return pq.parameterStatus(c, name); }
int confab_pq_server_version(const confab_pq_connection *c) { return pq.serverVersion(c); }

int confab_pq_send(confab_pq_connection *c, const char *sql) { return pq.sendQuery(c, sql); }

int confab_pq_send_prepare(confab_pq_connection *c, const char *name, const char *sql) {
    return pq.sendPrepare(c, name, sql, 0, NULL);
}

int confab_pq_send_prepared(
    confab_pq_connection *c, const char *name, int count, const char *const *values, const int *lengths,
    const int *formats) {
    return pq.sendQueryPrepared(c, name, count, values, lengths, formats, 1);
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Sends what is buffered, and reads until the next result is complete. Returns 0 if the connection failed or the time is over.
static int await_result(connection *c, int64_t end) {
    for (;;) {
        int unsent = pq.flush(c);
        if (unsent < 0) return 0;
        if (unsent == 0 && !pq.isBusy(c)) return 1;
        int64_t left = end - milliseconds();
        if (left <= 0) return 0;
        struct pollfd descriptor = {.fd = pq.socket(c), .events = POLLIN | (unsent > 0 ? POLLOUT : 0)};
        if (descriptor.fd < 0) return 0;
        int ready = poll(&descriptor, 1, left > 60000 ? 60000 : (int)left);
        if (ready < 0 && errno != EINTR) return 0;
        if (ready > 0 && (descriptor.revents & ~POLLOUT) != 0 && !pq.consumeInput(c)) return 0;
    }
}

confab_pq_result *confab_pq_wait(confab_pq_connection *c, int64_t timeout) {
    int64_t end = milliseconds() + timeout;
    result *last = NULL;
    for (;;) {
        if (!await_result(c, end)) break;
        result *next = pq.getResult(c);
        if (next == NULL) return last;
        // Keep the first error of a command with several statements: the others were not executed.
        if (last != NULL && !confab_pq_succeeded(last)) {
            pq.clear(next);
            continue;
        }
        if (last != NULL) pq.clear(last);
        last = next;
    }
    if (last != NULL) pq.clear(last);
    return NULL;
}

int confab_pq_succeeded(const confab_pq_result *r) {
    int status = pq.resultStatus(r);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

const char *confab_pq_field(const confab_pq_result *r, char field) { return pq.resultErrorField(r, field); }
int confab_pq_rows(const confab_pq_result *r) { return pq.ntuples(r); }
int confab_pq_columns(const confab_pq_result *r) { return pq.nfields(r); }
const char *confab_pq_column_name(const confab_pq_result *r, int column) { return pq.fname(r, column); }
uint32_t confab_pq_column_type(const confab_pq_result *r, int column) { return pq.ftype(r, column); }
int confab_pq_is_null(const confab_pq_result *r, int row, int column) { return pq.getisnull(r, row, column); }
const uint8_t *confab_pq_value(const confab_pq_result *r, int row, int column) {
    return (const uint8_t *)pq.getvalue(r, row, column);
}
int confab_pq_length(const confab_pq_result *r, int row, int column) { return pq.getlength(r, row, column); }
const char *confab_pq_changed(confab_pq_result *r) { return pq.cmdTuples(r); }
void confab_pq_clear(confab_pq_result *r) { pq.clear(r); }
