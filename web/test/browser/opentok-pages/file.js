// A video file instead of camera and microphone.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const video = document.createElement('video');
Object.assign(video, { src: '/clip.webm', loop: true, muted: false, crossOrigin: 'anonymous' });
const session = OT.initSession(API_KEY, SESSION_ID);
const start = async () => {
  await video.play();
  const stream = video.captureStream();
  const publisher = OT.initPublisher('publisher', {
    insertMode: 'append', fitMode: 'contain', videoSource: stream.getVideoTracks()[0], audioSource: stream.getAudioTracks()[0],
  }, handleError);
  publisher.on('destroyed', () => video.pause());
  session.publish(publisher, (error) => (error ? handleError(error) : log('publishing')));
};
session.connect(TOKEN, (error) => (error ? handleError(error) : log('ready')));

const button = document.createElement('button');
button.textContent = 'Start or stop';
button.addEventListener('click', start);
document.body.append(button);
