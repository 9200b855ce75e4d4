// The loudspeakers and headphones that play the sound of subscribers, where the browser lets pages choose.

import { deviceError } from '../lib/media/devices.js';
import { unsupported } from './unsupported.js';

/** @typedef {{deviceId: string, label: string | null}} OutputDevice */

/** @type {Set<any>} the video elements of all subscribers */
const players = new Set();
/** The chosen device; empty for the browser's default. */
let chosen = '';

const canChoose = () => typeof HTMLMediaElement === 'function' && 'setSinkId' in HTMLMediaElement.prototype;

/** @returns {Promise<OutputDevice[]>} */
export async function getAudioOutputDevices() {
  const devices = globalThis.navigator?.mediaDevices;
  if (!devices || !canChoose()) throw unsupported('Choosing an audio output device is');
  const all = await devices.enumerateDevices();
  return all.filter(({ kind }) => kind === 'audiooutput').map(({ deviceId, label }) => ({ deviceId, label }));
}

/** @returns {Promise<OutputDevice>} */
export async function getActiveAudioOutputDevice() {
  const devices = await getAudioOutputDevices();
  const active = devices.find(({ deviceId }) => deviceId === (chosen || 'default')) ?? devices[0];
  return active ?? { deviceId: 'default', label: null };
}

/**
 * Plays the sound of all subscribers, also of later ones, on this device.
 * @param {string} deviceId
 */
export async function setAudioOutputDevice(deviceId) {
  if (!canChoose()) throw unsupported('Choosing an audio output device is');
  if (!(await getAudioOutputDevices()).some((device) => device.deviceId === deviceId)) {
    throw deviceError(new DOMException('No such audio output device.', 'NotFoundError'));
  }
  await Promise.all([...players].map((player) => player.setSinkId(deviceId))).catch((error) => { throw deviceError(error); });
  chosen = deviceId;
}

/** @param {any} player the video element of a new subscriber */
export function addPlayer(player) {
  players.add(player);
  if (chosen !== '') player.setSinkId?.(chosen).catch(() => {});
}

/** @param {any} player */
export function removePlayer(player) {
  players.delete(player);
}
