// A voice call: no camera, and what the other side shows without video.
/* global OT, API_KEY, SESSION_ID, TOKEN, NAME, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
session.on('streamCreated', ({ stream }) => {
  log(`hasVideo: ${stream.hasVideo}`);
  const subscriber = session.subscribe(stream, 'subscriber', {
    insertMode: 'append', audioVolume: 40, style: { audioLevelDisplayMode: 'on', nameDisplayMode: 'on' },
  }, handleError);
  subscriber.on('audioLevelUpdated', (event) => { if (event.audioLevel > 0.05) log('sound'); });
  subscriber.on('videoDisabled', (event) => log(`videoDisabled: ${event.reason}`));
  window.subscriber = subscriber;
});
session.on('streamPropertyChanged', ({ changedProperty, newValue }) => log(`${changedProperty}: ${newValue}`));
session.connect(TOKEN, (error) => {
  if (error) return handleError(error);
  window.publisher = session.publish('publisher', { insertMode: 'append', videoSource: null, name: NAME }, handleError);
  return undefined;
});
window.session = session;
