// Devices: a page without a session lists them, shows a preview, and changes the camera and the microphone.
/* global OT, handleError, log */
let publisher;
OT.getUserMedia().then((stream) => {
  log(`tracks: ${stream.getTracks().map(({ kind }) => kind).sort()}`);
  stream.getTracks().forEach((track) => track.stop());
  OT.getDevices((error, devices) => {
    if (error) return handleError(error);
    const audioInputs = devices.filter((device) => device.kind === 'audioInput');
    const videoInputs = devices.filter((device) => device.kind === 'videoInput');
    log(`devices: ${audioInputs.length} ${videoInputs.length}`);
    publisher = OT.initPublisher('publisher', {
      audioSource: audioInputs[0].deviceId, videoSource: videoInputs[0].deviceId, width: '320px', height: 240,
    }, (failure) => (failure ? handleError(failure) : log('preview')));
    publisher.once('audioLevelUpdated', (event) => log(`level: ${typeof event.audioLevel}`));
    window.publisher = publisher;
    return undefined;
  });
});
window.change = async () => {
  const { deviceId } = await publisher.cycleVideo();
  log(`camera: ${deviceId}`);
  await publisher.setAudioSource('tone');
  log(`microphone: ${publisher.getAudioSource().kind}`);
  log(`source: ${publisher.getVideoSource().type}`);
};
