/**
 * Condition that a membership has not ended: a greater version than its removal, and than the departure of the user from the organization.
 *
 * @param member alias of the membership
 * @param user   alias of the row in `users`
 */
export const live = (member = 'm', user = 'u') =>
  `${member}.added > ${member}.removed AND ${member}.added > ${user}.left_version`;
