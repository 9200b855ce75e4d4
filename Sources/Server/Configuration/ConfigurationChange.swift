/// The changes made by a reload: settings that apply while the server runs, and settings that need a restart.
struct ConfigurationChange {
    /// A setting whose value differs. The values are redacted if the setting is a secret.
    struct Difference: Equatable {
        var key: String
        var before: String
        var after: String
    }

    /// Changed settings that take effect without a restart.
    private(set) var applied: [Difference] = []
    /// Changed settings that keep their old values until a restart.
    private(set) var pending: [Difference] = []
    private(set) var unchanged = 0
    /// The configuration in use after the reload: the previous one with the changes in `applied`.
    private(set) var result: ConfabConfiguration

    init(from current: ConfabConfiguration, to loaded: ConfabConfiguration) {
        result = current
        for setting in Setting.all {
            let (before, after) = (setting.text(current), setting.text(loaded))
            guard before != after else {
                unchanged += 1
                continue
            }
            let difference = Difference(
                key: setting.key.name, before: setting.shown(before), after: setting.shown(after))
            if setting.key.isLive {
                setting.copy(loaded, &result)
                applied.append(difference)
            } else {
                pending.append(difference)
            }
        }
    }
}

extension Setting {
    fileprivate func shown(_ text: String) -> String {
        text.isEmpty ? "unset" : key.isSecret ? "[redacted]" : text
    }
}
