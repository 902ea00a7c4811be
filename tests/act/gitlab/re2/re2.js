// Like re2, whose expressions always know Unicode.
module.exports = class RE2 extends RegExp {
  constructor (pattern, flags = '') {
    super(pattern, flags.includes('u') ? flags : flags + 'u')
  }
}
