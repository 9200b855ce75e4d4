// The errors of features that do not exist yet. They are those with which OpenTok's SDK fails in a browser that lacks the feature.

import { otFailure } from '../lib/errors.js';

/** @param {string} feature the beginning of a sentence, such as "End-to-end encryption is" */
export function unsupported(feature) {
  return otFailure('OT_NOT_SUPPORTED', 1013, `${feature} not supported. Check for support before you use it.`);
}
