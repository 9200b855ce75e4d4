// What this browser remembers between visits. Storage may be blocked or full: then the page works and forgets.

/** @param {() => Storage} choose reading `window.localStorage` can itself throw */
function memoryIn(choose) {
  return {
    /** @param {string} key @returns {string | null} */
    get(key) {
      try {
        return choose().getItem(key);
      } catch {
        return null;
      }
    },
    /** @param {string} key @param {string | null} value */
    set(key, value) {
      try {
        if (value === null) choose().removeItem(key);
        else choose().setItem(key, value);
      } catch {
        // Nothing to do: the page goes on without memory.
      }
    },
  };
}

const lasting = memoryIn(() => window.localStorage);
const ofThisTab = memoryIn(() => window.sessionStorage);
const keys = { identity: 'confab.identity', form: 'confab.form', devices: 'confab.devices' };

/**
 * @param {boolean} guest a guest's identity lives in its tab alone
 */
export function identityMemory(guest) {
  const memory = guest ? ofThisTab : lasting;
  return {
    recall: () => memory.get(keys.identity) ?? undefined,
    /** @param {string | null} secret */
    remember: (secret) => memory.set(keys.identity, secret),
  };
}

/** @param {import('./types.js').Form} form */
export function rememberForm(form) {
  lasting.set(keys.form, JSON.stringify(form));
}

/** @returns {import('./types.js').Form} */
export function recallForm() {
  const kept = parsed(lasting.get(keys.form));
  const interests = Array.isArray(kept.interests) ? kept.interests.filter((/** @type {unknown} */ one) => typeof one === 'string') : [];
  return {
    name: typeof kept.name === 'string' ? kept.name : '',
    interests,
    mode: kept.mode === 'text' ? 'text' : 'video',
    agreed: kept.agreed === true,
  };
}

/** @returns {{camera?: string, microphone?: string}} */
export function recallDevices() {
  const { camera, microphone } = parsed(lasting.get(keys.devices));
  return { camera: typeof camera === 'string' ? camera : undefined, microphone: typeof microphone === 'string' ? microphone : undefined };
}

/** @param {{camera?: string, microphone?: string}} devices */
export function rememberDevices(devices) {
  lasting.set(keys.devices, JSON.stringify({ ...recallDevices(), ...devices }));
}

/**
 * A place for another page's settings.
 * @param {boolean} guest @param {string} key
 */
export function shelf(guest, key) {
  const memory = guest ? ofThisTab : lasting;
  return {
    get: () => parsed(memory.get(key)),
    /** @param {object | null} value */
    set: (value) => memory.set(key, value === null ? null : JSON.stringify(value)),
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
