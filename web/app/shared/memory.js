// Data that this browser keeps between visits. If storage is blocked or full, the page works without it.

import { basePath } from './base.js';

/**
 * Returns a storage that appends the server's path to each key. Otherwise, two servers under different paths of one
 * origin would share an identity.
 * @param {() => Storage} choose returns the storage to use. It is a function because reading `window.localStorage` can
 *   throw
 */
function memoryIn(choose) {
  return {
    /** @param {string} key @returns {string | null} */
    get(key) {
      try {
        return choose().getItem(key + basePath);
      } catch {
        return null;
      }
    },
    /** @param {string} key @param {string | null} value */
    set(key, value) {
      try {
        if (value === null) choose().removeItem(key + basePath);
        else choose().setItem(key + basePath, value);
      } catch {
        // The page works without storage.
      }
    },
  };
}

const lasting = memoryIn(() => window.localStorage);
const ofThisTab = memoryIn(() => window.sessionStorage);
const isText = (/** @type {unknown} */ value) => typeof value === 'string';
const keys = { identity: 'confab.identity', form: 'confab.form', devices: 'confab.devices' };

/**
 * Returns where to store data. A guest's data is stored only in the guest's tab and is gone when the tab closes.
 * @param {boolean} guest
 */
const memoryOf = (guest) => (guest ? ofThisTab : lasting);

/** Errors that mean that this server did not issue the identity (protocol §2, §7). Identities do not expire. */
const lostCodes = ['token_malformed', 'token_signature'];

/**
 * Returns true if a stored identity will never be valid again. Other token errors can be temporary, such as those caused by a
 * wrong clock, and forgetting an identity loses the user's contacts.
 * @param {string} code why the server closed the connection
 */
export const isIdentityLost = (code) => lostCodes.includes(code);

/** @param {boolean} guest */
export function identityMemory(guest) {
  const memory = memoryOf(guest);
  return {
    recall: () => memory.get(keys.identity) ?? undefined,
    /** @param {string | null} secret */
    remember: (secret) => memory.set(keys.identity, secret),
  };
}

/**
 * Returns storage for the form on the first screen.
 * @param {boolean} guest
 */
export function formMemory(guest) {
  const kept = overlay(guest, keys.form);
  return {
    /** @returns {import('../strangers/types.js').Form} */
    recall() {
      const { name, interests, mode, agreed, agreedToSamples } = kept.get();
      return {
        name: typeof name === 'string' ? name : '',
        interests: Array.isArray(interests) ? interests.filter(isText) : [],
        mode: mode === 'text' ? 'text' : 'video',
        agreed: agreed === true,
        ...(agreedToSamples === true ? { agreedToSamples } : {}),
      };
    },
    /** @param {Partial<import('../strangers/types.js').Form>} change */
    remember: (change) => kept.change(change),
  };
}

/** @typedef {{camera?: string, microphone?: string, speakers?: string}} Devices */
/** @typedef {ReturnType<typeof deviceMemory>} DeviceMemory */

/**
 * Returns storage for the ids of the most recently used camera, microphone and speakers.
 * @param {boolean} guest
 */
export function deviceMemory(guest) {
  const kept = overlay(guest, keys.devices);
  const known = (/** @type {unknown} */ id) => (typeof id === 'string' ? id : undefined);
  return {
    /** @returns {Devices} */
    recall() {
      const { camera, microphone, speakers } = kept.get();
      return { camera: known(camera), microphone: known(microphone), speakers: known(speakers) };
    },
    /** @param {Devices} change */
    remember: (change) => kept.change(change),
  };
}

/**
 * Returns storage for the settings of one page.
 * @param {boolean} guest
 * @param {string} key
 */
export function shelf(guest, key) {
  const memory = memoryOf(guest);
  return {
    get: () => parsed(memory.get(key)),
    /** @param {object | null} value */
    set: (value) => memory.set(key, value === null ? null : JSON.stringify(value)),
  };
}

/**
 * Returns storage for the form or the devices. Guests start with the values saved in this browser, but their changes
 * stay in their tab.
 * @param {boolean} guest
 * @param {string} key
 */
function overlay(guest, key) {
  const own = shelf(guest, key);
  return {
    get: () => ({ ...shelf(false, key).get(), ...own.get() }),
    /** @param {object} change */
    change: (change) => own.set({ ...own.get(), ...change }),
  };
}

/** @param {string | null} text @returns {Record<string, any>} */
function parsed(text) {
  try {
    const value = JSON.parse(text ?? '{}');
    return value && typeof value === 'object' ? value : {};
  } catch {
    return {};
  }
}
