// A canvas instead of a camera.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const canvas = document.createElement('canvas');
canvas.width = 320;
canvas.height = 240;
const context = canvas.getContext('2d');
let frame = 0;
setInterval(() => {
  context.fillStyle = 'magenta';
  context.fillRect(0, 0, 320, 240);
  context.fillStyle = 'white';
  context.fillRect((frame++ * 4) % 300, 8, 20, 20);
}, 60);

const session = OT.initSession(API_KEY, SESSION_ID);
const publisher = OT.initPublisher('publisher', {
  insertMode: 'append', videoSource: canvas.captureStream(15).getVideoTracks()[0], audioSource: null, mirror: false,
}, handleError);
publisher.on('destroyed', () => log('destroyed'));
session.connect(TOKEN, (error) => {
  if (error) return handleError(error);
  return session.publish(publisher, (refusal) => (refusal ? handleError(refusal) : log(`custom: ${publisher.stream.videoType}`)));
});
window.publisher = publisher;
