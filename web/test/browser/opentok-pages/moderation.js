// Moderation: muting, unpublishing and disconnecting others.
/* global OT, API_KEY, SESSION_ID, TOKEN, NAME, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
const streams = [];
session.on('streamCreated', ({ stream }) => {
  streams.push(stream);
  session.subscribe(stream, 'subscriber', { insertMode: 'append' }, handleError);
  log(`stream: ${stream.name}`);
});
session.on('muteForced', ({ active }) => log(`muteForced: ${active}`));
session.on('streamPropertyChanged', ({ stream, changedProperty, newValue }) => log(`${stream.name} ${changedProperty}: ${newValue}`));
session.on('streamDestroyed', ({ stream, reason }) => log(`gone: ${stream.name} ${reason}`));
session.on('connectionDestroyed', ({ reason }) => log(`left: ${reason}`));
session.on('sessionDisconnected', ({ reason }) => log(`disconnected: ${reason}`));
let publisher;
window.publish = () => {
  publisher = session.publish('publisher', { insertMode: 'append', name: NAME }, handleError);
  publisher.on('muteForced', () => log('muted'));
  publisher.on('streamDestroyed', ({ reason }) => log(`unpublished: ${reason}`));
};
session.connect(TOKEN, (error) => {
  if (error) return handleError(error);
  log(`may moderate: ${session.capabilities.forceDisconnect}`);
  return window.publish();
});
const call = (method, ...args) => session[method](...args).then(() => log(`${method}: done`), (error) => log(`${method}: ${error.name} ${error.code}`));
window.do = (method) => call(method, ...{
  forceMuteStream: [streams.at(-1)], forceMuteAll: [[publisher.stream]], disableForceMute: [],
  forceUnpublish: [streams.at(-1)], forceDisconnect: [streams.at(-1)?.connection],
}[method]);
