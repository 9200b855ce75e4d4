// The text of the page `/check`, in addition to the shared text. To translate: copy `en`, translate the values, and add the copy to
// `catalogs`.
import { stringsFor } from '../shared/strings.js';

/** @typedef {import('../../lib/check/verdicts.js').Measurements} Measurements */
/** @typedef {import('../../lib/check/verdicts.js').Flow} Flow */
/**
 * The words for one finding. They may depend on what was measured.
 * - `says`: the result, in the row.
 * - `todo`: what to do about it. Only problems have it.
 * - `short`: the same as a part of the sentence for support. A problem without it is a consequence of another one.
 * @typedef {{says: Word, todo?: Word, short?: Word}} Finding
 */
/** @typedef {string | ((measured: Measurements) => string)} Word */

const plural = new Intl.PluralRules('en');
/** @param {number} count @param {string} one @param {string} other */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

/** @param {number} kbit */
const rate = (kbit) => (kbit >= 1000 ? `${(kbit / 1000).toFixed(1)} Mbit/s` : `${kbit} kbit/s`);
/** @param {number} share */
const percent = (share) => `${(Math.round(1000 * share) / 10).toLocaleString('en')} %`;
/** @param {number | null} ms */
const time = (ms) => `${Math.round(ms ?? 0)} ms`;
/** @param {Flow | null} flow */
const facts = (flow) => {
  if (!flow) return '';
  const { loss, jitterMs, kbit, isLimited } = flow;
  const parts = [isLimited ? rate(kbit) : `At least ${rate(kbit)}`];
  if (loss !== null) parts.push(`${percent(loss)} of the packets lost`);
  if (jitterMs !== null) parts.push(`${time(jitterMs)} of jitter`);
  return parts.join(', ');
};
/** @param {Flow | null} flow */
const brief = (flow) => (flow ? `${flow.isLimited ? '' : 'at least '}${rate(flow.kbit)}` : 'unknown');
/** @param {Flow | null} flow */
const lost = (flow) => percent(flow?.loss ?? 0);
/** @param {Measurements} measured */
const mediaAddress = ({ address }) => address || 'the server’s media address';

const notAllowed = 'Open the site settings from the address bar, allow it, and check again.';
/** @param {string} device @returns {Record<string, Finding>} what cameras and microphones have in common */
const deviceFindings = (device) => ({
  untested: { says: 'Not checked yet.' },
  refused: { says: `The browser blocks the ${device} for this page.`, todo: notAllowed, short: `the browser blocks the ${device}` },
  missing: { says: `No ${device} was found.`, todo: `Connect a ${device}, and check again.`, short: `no ${device} was found` },
  busy: {
    says: `The ${device} could not be started.`, todo: `Close other programs that may use the ${device}, and check again.`,
    short: `the ${device} could not be started`,
  },
  insecure: {
    says: `Browsers allow the ${device} only over HTTPS.`, todo: 'Open this page with https://, and check again.',
    short: `the ${device} needs a page over HTTPS`,
  },
  unanswered: {
    says: 'The browser’s question was not answered.', todo: `Check again, and allow the ${device} when the browser asks.`,
    short: `access to the ${device} was not allowed in time`,
  },
  unknown: { says: `The ${device} could not be opened.`, todo: `Connect the ${device} again, and restart the browser.`, short: `the ${device} could not be opened` },
});

/** @param {'Upload' | 'Download'} name @param {'up' | 'down'} way @returns {Record<string, Finding>} */
const flowFindings = (name, way) => {
  const direction = name.toLowerCase();
  const says = (/** @type {Measurements} */ measured) => `${facts(measured[way])}.`;
  return {
    ...qualityFindings,
    works: { says },
    loss: {
      says, todo: 'Move closer to the router or use a cable. If that does not help, contact your internet provider.',
      short: (measured) => `${lost(measured[way])} of the packets are lost on the ${direction}`,
    },
    bandwidth: {
      says, todo: `Pause other ${direction === 'upload' ? 'uploads and backups' : 'downloads'} on your network, or turn your camera off in calls.`,
      short: (measured) => `the ${direction} carries only ${rate(measured[way]?.kbit ?? 0)}`,
    },
    jitter: {
      says, todo: 'Pause downloads and other calls on your network, move closer to the router or use a cable.',
      short: (measured) => `the ${direction} has ${time(measured[way]?.jitterMs ?? 0)} of jitter`,
    },
  };
};

/** @type {Record<string, Finding>} what prevents a measurement */
const qualityFindings = {
  untested: { says: 'Not measured.' },
  noPath: { says: 'Not measured, because no media reaches the server.' },
  mediaOff: { says: 'Not measured, because this server routes no media.' },
  roomsClosed: { says: 'Not measured, because only operators create rooms on this server.' },
  busy: { says: 'Not measured, because the server or your network has reached a limit. Check again in a few minutes.' },
  hidden: { says: 'Not measured, because this page was in the background. Check again, and stay on this page.' },
  failed: {
    says: 'Not measured, because the test stream did not come back.', todo: 'Check again. If this repeats, send the report to the operators of this site.',
    short: 'the test stream does not come back from the server',
  },
};

/** @type {Record<string, Finding>} what UDP and TCP have in common */
const wayFindings = {
  untested: { says: 'Not checked.' },
  notOffered: { says: 'Not offered by this server.' },
  mediaOff: { says: 'Not offered: this server routes no media.' },
};

const otherNetwork = 'Try another network, such as that of a phone.';

const en = {
  title: 'Confab – check',
  headline: 'Check your camera, microphone and network',
  pitch: 'This takes about half a minute. Allow the camera and the microphone when your browser asks, and say something while the check runs.',
  privacy: 'No one sees or hears you, and nothing is recorded. The measurement uses about 5 MB of data.',
  start: 'Start the check',
  again: 'Check again',
  checkThis: 'Check this device',
  result: 'Result',
  devices: 'Devices',
  network: 'Network',
  details: 'Report',
  copy: 'Copy report',
  copyLink: 'Copy link',
  share: 'Share…',
  linkHint: 'The link contains the whole result: the server does not store it. It contains no address of yours.',
  yourCamera: 'Your camera',
  playSound: 'Play a sound',
  heard: 'I heard it',
  notHeard: 'I heard nothing',
  waiting: 'Waiting…',
  badLink: 'This link is not complete. Ask for it again, or check this device.',
  shared: /** @param {string} when @param {string} browser */ (when, browser) => `This is the result of a check on ${when}${browser && `, in ${browser}`}.`,
  reportTitle: /** @param {string} host @param {string} when @param {string} browser */ (host, when, browser) => (
    `Check of ${host} on ${when}${browser && `, in ${browser}`}`),

  levels: { good: 'Good', fair: 'Limited', bad: 'Problem', none: 'Not tested', notOffered: 'Not offered', running: 'Testing' },
  status: {
    running: 'The check is running…',
    measuring: 'Measuring the network for ten seconds…',
    allow: 'Allow the camera and the microphone.',
    done: 'The check is complete.',
    copied: 'Copied.',
    copyFailed: 'This browser does not allow copying. Select the report below, and copy it.',
    shared: 'This is the result of an earlier check.',
  },
  running: {
    camera: 'Allow the camera when your browser asks.',
    microphone: 'Say something.',
    server: 'Connecting…',
    udp: 'Connecting…',
    tcp: 'Connecting…',
    turn: 'Connecting…',
    up: 'Measuring…',
    down: 'Measuring…',
    delay: 'Measuring…',
  },
  secondsLeft: /** @param {number} seconds */ (seconds) => `Measuring: ${counted(seconds, 'second', 'seconds')} left.`,

  // The sentence for support
  allGood: /** @param {Measurements} measured */ ({ speakers, path, up, down, roundTripMs }) => {
    if (!path || !up || !down) return 'Everything that was tested works, but the quality of the network was not measured.';
    const what = speakers === 'heard' ? 'Everything works' : 'Everything that was tested works';
    const how = { udp: 'over UDP', tcp: 'over TCP', turn: 'through the TURN server' }[path];
    const most = percent(Math.max(up.loss ?? 0, down.loss ?? 0));
    return `${what}: media travels ${how}, with ${brief(up)} up and ${brief(down)} down, ${most} loss and ${time(roundTripMs)} of delay.`;
  },

  rows: {
    camera: {
      name: 'Camera',
      findings: /** @type {Record<string, Finding>} */ ({
        ...deviceFindings('camera'),
        works: { says: 'Works.' },
        dark: { says: 'The video is black.', todo: 'Open the cover of the camera, or turn on a light.', short: 'the video of the camera is black' },
      }),
    },
    microphone: {
      name: 'Microphone',
      findings: /** @type {Record<string, Finding>} */ ({
        ...deviceFindings('microphone'),
        works: { says: 'Works: it picked up sound.' },
        unmeasured: { says: 'It is on, but this browser could not measure its sound.' },
        silent: {
          says: 'No sound came from the microphone.', todo: 'Check again and speak. Look for a mute switch, and choose the right microphone in the system’s settings.',
          short: 'the microphone is silent',
        },
        muted: { says: 'The microphone is muted.', todo: 'Unmute it in the system’s settings or on the device, and check again.', short: 'the microphone is muted' },
      }),
    },
    speakers: {
      name: 'Speakers',
      findings: /** @type {Record<string, Finding>} */ ({
        untested: { says: 'Not tested yet.' },
        works: { says: 'Work: you heard the sound.' },
        silent: { says: 'You heard nothing.', todo: 'Turn up the volume, and choose the right speakers in the system’s settings.', short: 'the speakers are silent' },
      }),
    },
    server: {
      name: 'Server',
      findings: /** @type {Record<string, Finding>} */ ({
        untested: { says: 'Not checked yet.' },
        works: { says: 'Works.' },
        noUpgrade: {
          says: 'The server answers, but a WebSocket could not be opened. A proxy or firewall in between does not let it through.',
          todo: `${otherNetwork} If it fails there too, the operators of this site must let their proxy pass on the headers Upgrade and Connection.`,
          short: ({ host }) => `the server ${host} answers over HTTP, but no WebSocket can be opened`,
        },
        unreachable: {
          says: 'The server does not answer.', todo: `Check your internet connection, and try again in a moment. ${otherNetwork}`,
          short: ({ host }) => `the server ${host} does not answer`,
        },
        refused: {
          says: 'The server refused the connection.', todo: 'Close other Confab tabs, wait a minute and check again. You may also be banned from this site.',
          short: ({ host }) => `the server ${host} refuses the connection`,
        },
        lost: {
          says: 'The connection was lost during the check.', todo: 'Check again. If this repeats, move closer to the router or use a cable.',
          short: ({ host }) => `the connection to the server ${host} was lost during the check`,
        },
      }),
    },
    udp: {
      name: 'Media over UDP',
      findings: /** @type {Record<string, Finding>} */ ({
        ...wayFindings,
        works: { says: (measured) => `Works: ${mediaAddress(measured)} was reached.` },
        blocked: {
          says: (measured) => `Blocked: ${mediaAddress(measured)} was not reached over UDP. Calls work in another way, but may stutter.`,
          todo: 'Ask the administrator of your network to allow UDP to this address.',
          short: (measured) => `UDP to ${mediaAddress(measured)} is blocked`,
        },
        blockedAll: {
          says: (measured) => `Blocked: ${mediaAddress(measured)} was not reached.`,
          todo: `${otherNetwork} If calls work there, ask the administrator of your network to allow UDP to this address. If not, the operators of this site must check the server’s firewall and the address that it announces (media.address).`,
          short: (measured) => `neither UDP nor TCP reaches the server at ${mediaAddress(measured)}, so there is no audio and video`,
        },
        wrongAddress: {
          says: (measured) => `The server announces ${mediaAddress(measured)} for media, where it was not reached.`,
          todo: 'The operators of this site must set media.address to the server’s public address, and open its ports in the firewall.',
          short: (measured) => `the server announces ${mediaAddress(measured)} for media, where it cannot be reached`,
        },
      }),
    },
    tcp: {
      name: 'Media over TCP',
      findings: /** @type {Record<string, Finding>} */ ({
        ...wayFindings,
        works: { says: 'Works. It is used where UDP is blocked.' },
        blocked: {
          says: (measured) => `Blocked: ${mediaAddress(measured)} was not reached over TCP. It is only needed where UDP is blocked.`,
          todo: 'If this happens on every network, the operators of this site should open the TCP port too.',
          short: (measured) => `TCP to ${mediaAddress(measured)} is blocked`,
        },
        blockedAll: { says: 'Blocked.', todo: otherNetwork, short: (measured) => `TCP to ${mediaAddress(measured)} is blocked, so there is no audio and video` },
        blockedToo: { says: 'The server was not reached over TCP either.' },
        wrongAddress: {
          says: (measured) => `The server announces ${mediaAddress(measured)} for media, where it was not reached.`,
          todo: 'The operators of this site must set media.address to the server’s public address, and open its ports in the firewall.',
          short: (measured) => `the server announces ${mediaAddress(measured)} for media, where it cannot be reached`,
        },
      }),
    },
    turn: {
      name: 'TURN server',
      findings: /** @type {Record<string, Finding>} */ ({
        untested: { says: 'Not checked.' },
        mediaOff: { says: 'Not needed: this server routes no media.' },
        notOffered: { says: 'This server offers no TURN server.' },
        works: { says: ({ relay }) => `Works${relay ? ` over ${relay.toUpperCase()}` : ''}. It is used where nothing else works.` },
        needed: {
          says: 'This server offers no TURN server, which would help on a network like this one.',
          todo: 'The operators of this site can set up a TURN server on port 443 (ice.turnServers).', short: 'the site offers no TURN server',
        },
        credentials: {
          says: 'The TURN server refused the user name and the password.',
          todo: 'The operators of this site must set the same secret in Confab (ice.turnSecret) and in the TURN server, and check the clocks of both.',
          short: 'the TURN server refuses the credentials that the site gave out',
        },
        refused: {
          says: 'The TURN server refused to relay.', todo: 'The operators of this site should look for the reason in the log of the TURN server.',
          short: 'the TURN server refuses to relay',
        },
        unreachable: {
          says: 'The TURN server does not answer.', todo: `${otherNetwork} If it fails there too, the operators of this site should check the TURN server and ice.turnServers.`,
          short: 'the TURN server does not answer',
        },
        noRelay: {
          says: 'The TURN server does not answer, or refused the credentials. This browser does not say which.',
          todo: 'Check again with Chrome, which says why.', short: 'the TURN server cannot be used',
        },
        cannotRelay: {
          says: (measured) => `The TURN server answers, but it does not reach ${mediaAddress(measured)}.`,
          todo: 'The operators of this site must allow the TURN server to reach this address.',
          short: (measured) => `the TURN server does not reach ${mediaAddress(measured)}`,
        },
      }),
    },
    up: { name: 'Upload', findings: flowFindings('Upload', 'up') },
    down: { name: 'Download', findings: flowFindings('Download', 'down') },
    delay: {
      name: 'Delay',
      findings: /** @type {Record<string, Finding>} */ ({
        ...qualityFindings,
        works: { says: ({ roundTripMs }) => `${time(roundTripMs)} to the server and back.` },
        delay: {
          says: ({ roundTripMs }) => `${time(roundTripMs)} to the server and back. People may interrupt each other.`,
          todo: 'Pause downloads and other calls on your network, and turn off a VPN.',
          short: ({ roundTripMs }) => `it takes ${time(roundTripMs)} to the server and back`,
        },
      }),
    },
  },
};

/** @typedef {import('../shared/strings.js').Strings & {check: typeof en}} Strings */

/** @type {Record<string, typeof en>} */
const catalogs = { en };

/** @param {readonly string[]} languages @returns {{language: string, strings: Strings}} */
export function checkStringsFor(languages) {
  const { language, strings } = stringsFor(languages.filter((tag) => tag.split('-')[0].toLowerCase() in catalogs));
  return { language, strings: { ...strings, check: catalogs[language] } };
}
