// The ES module, with OpenTok's names.
/* global SCRIPT, log */
const { default: OT, initSession, initPublisher } = await import(SCRIPT.replace('opentok.min.js', 'opentok.esm.js'));
log(`module: ${OT.initSession === initSession} ${typeof initPublisher} ${OT.properties.apiURL === new URL(SCRIPT).origin}`);
