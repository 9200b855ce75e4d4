// Basic video chat: everyone publishes and subscribes to everyone else.
/* global OT, API_KEY, SESSION_ID, TOKEN, NAME, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);

session.on('streamCreated', (event) => {
  const options = { insertMode: 'append', width: '100%', height: '100%' };
  const subscriber = session.subscribe(event.stream, 'subscriber', options, handleError);
  log(`subscriber element: ${subscriber.element.className.includes('OT_subscriber')}`);
  subscriber.on('connected', () => log('connected'));
});
session.on('streamDestroyed', (event) => log(`streamDestroyed: ${event.reason}`));
session.on('sessionDisconnected', (event) => log(`sessionDisconnected: ${event.reason}`));
session.on('connectionCreated', (event) => {
  log(event.connection.connectionId === session.connection.connectionId ? 'connection: own' : `connection: ${event.connection.data}`);
});

const publisherOptions = { insertMode: 'append', width: '100%', height: '100%', name: NAME };
const publisher = OT.initPublisher('publisher', publisherOptions, handleError);
publisher.on('streamCreated', () => log('publishing'));
publisher.on('streamDestroyed', (event) => {
  if (window.keepsPublisher) event.preventDefault();
  log(`publisher streamDestroyed: ${event.reason}`);
});
session.connect(TOKEN, (error) => {
  if (error) handleError(error);
  else session.publish(publisher, handleError);
});
Object.assign(window, { session, publisher });
