// Reconnection: what happens to the session, the subscribers and the signals sent during an outage.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
session.on({
  sessionReconnecting: () => log('reconnecting'),
  sessionReconnected: () => log('reconnected'),
  sessionDisconnected: (event) => log(`disconnected: ${event.reason}`),
  streamDestroyed: () => log('streamDestroyed'),
  'signal:chat': (event) => log(`signal: ${event.data}`),
});
session.on('streamCreated', ({ stream }) => {
  const subscriber = session.subscribe(stream, 'subscriber', { insertMode: 'append' }, handleError);
  subscriber.on({ connected: () => log('subscriber connected'), disconnected: () => log('subscriber disconnected') });
});
session.connect(TOKEN, (error) => (error ? handleError(error) : session.publish('publisher', { insertMode: 'append' }, handleError)));
window.send = (data, retryAfterReconnect) => session.signal({ type: 'chat', data, retryAfterReconnect }, (error) => {
  if (error) log(`not sent: ${error.name} ${data}`);
});
window.session = session;
