// Screen sharing.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
session.on('streamCreated', ({ stream }) => {
  log(`type: ${stream.videoType}`);
  session.subscribe(stream, 'subscriber', { insertMode: 'append' }, handleError);
});
session.connect(TOKEN, (error) => (error ? handleError(error) : log('ready')));

window.share = () => OT.checkScreenSharingCapability((response) => {
  if (!response.supported || response.extensionRegistered === false) return log('not supported');
  const publisher = OT.initPublisher('publisher', { videoSource: 'screen', publishAudio: true, audioSource: null }, (error) => {
    if (error) return handleError(error);
    return session.publish(publisher, handleError);
  });
  publisher.on('mediaStopped', () => log('mediaStopped'));
  publisher.on('streamDestroyed', (event) => log(`ended: ${event.reason}`));
  return log('sharing');
});
