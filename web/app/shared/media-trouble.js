// Maps the SDK's camera and microphone errors to problems that the page can show.

/** @typedef {'refused' | 'missing' | 'busy' | 'insecure' | 'lost' | 'unknown'} MediaTrouble */

/** @type {Record<string, MediaTrouble>} */
const meanings = {
  OT_USER_MEDIA_ACCESS_DENIED: 'refused',
  OT_PERMISSION_DENIED: 'refused',
  OT_NO_DEVICES_FOUND: 'missing',
  OT_CONSTRAINTS_NOT_SATISFIED: 'missing',
  OT_NO_VALID_CONSTRAINTS: 'missing',
  OT_HARDWARE_UNAVAILABLE: 'busy',
  OT_CHROME_MICROPHONE_ACQUISITION_ERROR: 'busy',
};

/** @param {unknown} error @returns {MediaTrouble} */
export function mediaTrouble(error) {
  return meanings[/** @type {{name?: string} | undefined} */ (error)?.name ?? ''] ?? 'unknown';
}
