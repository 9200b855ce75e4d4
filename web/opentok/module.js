// The ES module. `@opentok/client` exports the same names.

import { makeOT } from './ot.js';

/** @type {import('../v2/js/opentok.esm.js').OpenTok} */
const OT = makeOT(import.meta.url);
export default OT;

export const {
  checkScreenSharingCapability, checkSystemRequirements, getActiveAudioOutputDevice, getAudioOutputDevices, getDevices, getSupportedCodecs,
  getUserMedia, hasEndToEndEncryptionSupport, hasMediaProcessorSupport, initPublisher, initSession, log, off, on, once, properties, publishers,
  registerScreenSharingExtension, reportIssue, setAudioOutputDevice, setLogLevel, setProxyUrl, subscribers, unblockAudio,
  upgradeSystemRequirements,
} = OT;
