// The few functions of libpq that storage uses. The library is loaded when the first connection is made, so neither a build nor
// a server without PostgreSQL needs it. The declarations follow libpq's documentation ("libpq: C Library").
#ifndef CONFAB_CPOSTGRES_H
#define CONFAB_CPOSTGRES_H

#include <stddef.h>
#include <stdint.h>

/// Loads libpq (libpq.so.5 or libpq.5.dylib) once per process. Returns 1 if it is loaded, and 0 if it is not installed or is too
/// old. Call it before any other function.
int confab_pq_load(void);

/// A connection (PGconn) and a result (PGresult). Use a connection on one thread at a time.
typedef struct confab_pq_connection confab_pq_connection;
typedef struct confab_pq_result confab_pq_result;

/// Returns 1 if the text is a connection URL or string that libpq accepts. Its error message is dropped, because it can quote
/// the password.
int confab_pq_is_valid(const char *text);

/// Connects, which blocks until `connect_timeout` of each host. Later keywords take precedence over earlier ones. Returns NULL
/// only if memory is exhausted.
confab_pq_connection *confab_pq_connect(const char *const *keywords, const char *const *values);
void confab_pq_finish(confab_pq_connection *connection);
/// Returns 1 if the connection is established and has not failed.
int confab_pq_is_connected(const confab_pq_connection *connection);
/// Returns the message of the connection's last error. It contains no password.
const char *confab_pq_error(const confab_pq_connection *connection);
/// Returns a parameter that the server reported, such as "server_encoding"; NULL if it did not.
const char *confab_pq_parameter(const confab_pq_connection *connection, const char *name);
/// Returns the server's version as a number, such as 150006.
int confab_pq_server_version(const confab_pq_connection *connection);

/// These functions send a command, and return 1, or 0 if the connection failed. `confab_pq_wait` returns the result.
int confab_pq_send(confab_pq_connection *connection, const char *sql);
int confab_pq_send_prepare(confab_pq_connection *connection, const char *name, const char *sql);
/// Parameters with the format 1 are bytes of the given length, and others are text. All columns of the result are binary.
int confab_pq_send_prepared(
    confab_pq_connection *connection, const char *name, int count, const char *const *values, const int *lengths,
    const int *formats);
/// Waits for the last result of a command, for at most `timeout` milliseconds. Returns NULL if the connection failed or the time
/// is over. The connection is then in the middle of a command and must be closed. The caller owns the result.
confab_pq_result *confab_pq_wait(confab_pq_connection *connection, int64_t timeout);

/// Returns 1 if the command succeeded.
int confab_pq_succeeded(const confab_pq_result *result);
/// Returns a field of an error, such as 'C' for the SQLSTATE; NULL if the error does not have it.
const char *confab_pq_field(const confab_pq_result *result, char field);
int confab_pq_rows(const confab_pq_result *result);
int confab_pq_columns(const confab_pq_result *result);
const char *confab_pq_column_name(const confab_pq_result *result, int column);
/// Returns the object ID of a column's type.
uint32_t confab_pq_column_type(const confab_pq_result *result, int column);
int confab_pq_is_null(const confab_pq_result *result, int row, int column);
const uint8_t *confab_pq_value(const confab_pq_result *result, int row, int column);
int confab_pq_length(const confab_pq_result *result, int row, int column);
/// Returns the number of rows that a command changed, as text; empty if it changes no rows.
const char *confab_pq_changed(confab_pq_result *result);
void confab_pq_clear(confab_pq_result *result);

#endif
