// Stereo sound without a camera. The left channel plays a tone, the right channel is silent.
/* global OT, API_KEY, SESSION_ID, TOKEN, handleError, log */
const session = OT.initSession(API_KEY, SESSION_ID);
let publisher;
const toggle = () => {
  if (session.isConnected()) {
    publisher.destroy();
    session.disconnect();
    return;
  }
  const context = new AudioContext();
  const tone = new OscillatorNode(context, { frequency: 440 });
  const left = new ChannelMergerNode(context, { numberOfInputs: 2 });
  const output = new MediaStreamAudioDestinationNode(context, { channelCount: 2 });
  tone.connect(left, 0, 0);
  left.connect(output);
  tone.start();
  publisher = OT.initPublisher('publisher', {
    insertMode: 'append', audioSource: output.stream.getAudioTracks()[0], videoSource: null, enableStereo: true, audioBitrate: 128000,
    disableAudioProcessing: true,
  }, handleError);
  publisher.on('destroyed', () => log('destroyed'));
  session.connect(TOKEN, (error) => {
    if (error) return handleError(error);
    return session.publish(publisher, (refusal) => (refusal ? handleError(refusal) : log('publishing')));
  });
};
log(`connected: ${session.isConnected()}`);

const button = document.createElement('button');
button.textContent = 'Start or stop';
button.addEventListener('click', toggle);
document.body.append(button);
