/**
 * Condition that a membership has not ended: a greater version than its removal, and than the departure of the user `u` from the organization.
 *
 * @param member alias of the membership
 */
export const live = (member = 'm') => `${member}.added > ${member}.removed AND ${member}.added > u.left_version`;
