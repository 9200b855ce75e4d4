// Data that this browser keeps for the room page, in addition to the name shared with the other pages.
import { formMemory, shelf } from '../shared/memory.js';
import { knownSettings } from './settings.js';

/** @typedef {import('./types.js').Remembered} Remembered */

/** @template T @param {readonly T[]} all @param {any} value @returns {T} the value, or the first of `all` if it is not among them */
const known = (all, value) => (all.includes(value) ? value : all[0]);

/** @param {boolean} guest whether the user is a guest, whose settings are kept only in the guest's tab */
export function roomMemory(guest) {
  const kept = shelf(guest, 'confab.room');
  const forms = formMemory(guest);
  return {
    /** @returns {Remembered} */
    recall() {
      const { layout, corner, keys, settings } = kept.get();
      return {
        name: forms.recall().name, layout: known(/** @type {const} */ (['auto', 'grid', 'speaker']), layout),
        corner: known(/** @type {const} */ (['bottomRight', 'bottomLeft', 'topLeft', 'topRight']), corner),
        keys: keys !== false, settings: knownSettings(settings),
      };
    },
    /** @param {Remembered} settings */
    remember({ name, ...settings }) {
      forms.remember({ name });
      kept.set(settings);
    },
  };
}
