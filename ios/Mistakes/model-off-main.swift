// Expect: main actor-isolated property 'isMuted' can not be mutated from a nonisolated context
import Observation

@MainActor @Observable final class Model {
    var isMuted = false
}

func mute(_ model: Model) { model.isMuted = true }
