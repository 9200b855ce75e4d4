// Text chat with signals.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
const byId = new Map();
session.on('connectionCreated', ({ connection }) => byId.set(connection.connectionId, connection));
session.on('signal:msg', (event) => {
  const isSame = event.from === byId.get(event.from.connectionId);
  log(`${event.from.connectionId === session.connection.connectionId ? 'mine' : 'theirs'}: ${event.type} ${event.data} ${isSame}`);
});
session.on('signal', (event) => log(`any: ${event.type}`));
session.connect(TOKEN, (error) => (error ? handleError(error) : log('ready')));

window.send = (data) => session.signal({ type: 'msg', data }, (error) => error && log(`${error.name} ${error.message}`));
window.fail = (signal) => new Promise((resolve) => {
  session.signal(signal, (error) => resolve(error ? [error.name, error.code] : null));
});
// A connection that does not exist: an id whose first character differs.
window.nobody = undefined;
session.on('sessionConnected', () => {
  window.nobody = session.connection.connectionId.replace(/^./, (first) => (first === 'a' ? 'b' : 'a'));
});
window.sendToOther = (data) => {
  const [to] = [...byId.values()].filter((connection) => connection !== session.connection);
  session.signal({ to, type: 'msg', data }, handleError);
};
