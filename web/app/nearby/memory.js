// Data that this browser keeps for the page `/nearby`, in addition to the name and the agreement shared with the other
// pages.
import { formMemory, shelf } from '../shared/memory.js';

/** @typedef {import('./types.js').Remembered} Remembered */

/** @param {unknown} value */
const isPair = (value) => Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string');

/** @param {boolean} guest whether the user is a guest, whose settings are kept only in the guest's tab */
export function nearbyMemory(guest) {
  const kept = shelf(guest, 'confab.nearby');
  const forms = formMemory(guest);
  return {
    /** @param {import('./types.js').Unit} unit the unit to use if the user has not chosen one @returns {Remembered} */
    recall(unit) {
      const { entered, position, unit: chosen, radius, visible, doNotDisturb, ringable, push, blockedNames } = kept.get();
      /** @type {import('./types.js').Unit} */
      const known = chosen === 'mi' || chosen === 'km' ? chosen : unit;
      return {
        entered: entered === true, position: position !== false, unit: known,
        radius: chosen === known && Number.isSafeInteger(radius) ? radius : { mi: 200, km: 320 }[known],
        visible: visible !== false, doNotDisturb: doNotDisturb === true,
        ringable: ringable === 'contacts' || ringable === 'nobody' ? ringable : 'everyone', push: push === true,
        blockedNames: Array.isArray(blockedNames) ? blockedNames.filter(isPair) : [],
      };
    },
    recallForm() {
      const { name, agreed } = forms.recall();
      return { name, agreed };
    },
    /** @param {import('./types.js').Form} form @param {Remembered} settings */
    remember(form, settings) {
      forms.remember(form);
      kept.set(settings);
    },
  };
}
