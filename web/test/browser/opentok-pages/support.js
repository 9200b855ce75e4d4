// What is not there yet fails as in a browser that lacks it.
/* global OT, API_KEY, SESSION_ID, TOKEN, log */
(async () => {
  const nameOf = (promise) => promise.then(() => 'fulfilled', (error) => `${error.name} ${error.code}`);
  log(`requirements: ${OT.checkSystemRequirements()}`);
  log(`encryption: ${OT.hasEndToEndEncryptionSupport()}`);
  const encrypted = OT.initSession(API_KEY, SESSION_ID, { encryptionSecret: 'a long secret' });
  log(`encrypted: ${await new Promise((resolve) => { encrypted.connect(TOKEN, (error) => resolve(`${error.name} ${error.code}`)); })}`);
  log(`secret: ${await nameOf(OT.initSession(API_KEY, SESSION_ID).setEncryptionSecret('a long secret'))}`);
  log(`report: ${await new Promise((resolve) => { OT.reportIssue((error) => resolve(`${error.name} ${error.code}`)); })}`);
  const publisher = OT.initPublisher();
  await new Promise((resolve) => { publisher.once('accessAllowed', resolve); });
  const isSilent = publisher.getVideoFilter() === null;
  log(`replacement: ${isSilent} ${await nameOf(publisher.applyVideoFilter({ type: 'backgroundReplacement', backgroundImgUrl: '/a.png' }))}`);
  // A connector that paints every frame in another color.
  const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 240 });
  const connector = { setTrack: async () => canvas.captureStream(10).getVideoTracks()[0], destroy: async () => log('connector destroyed') };
  log(`connector: ${await nameOf(publisher.setVideoMediaProcessorConnector(connector))} ${publisher.getVideoSource().type}`);
  log(`none: ${await nameOf(publisher.setVideoMediaProcessorConnector(null))}`);
  log(`invalid: ${await new Promise((resolve) => { OT.initSession(API_KEY, '').connect(TOKEN, (error) => resolve(error.name)); })}`);
  log(`token: ${await new Promise((resolve) => { OT.initSession(API_KEY, SESSION_ID).connect('T1==wrong', (error) => resolve(error.name)); })}`);
  log('done');
})();
