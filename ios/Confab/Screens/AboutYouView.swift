import AppModel
import Foundation
import SwiftUI

/// The screen with the name, the age confirmation and the rules.
struct AboutYouView: View {
    @Bindable var model: AboutYouModel

    var body: some View {
        NavigationStack {
            Form {
                Section {
                    TextField("Name", text: $model.name)
                    ModelText(model.nameTrouble ?? "")
                } footer: {
                    Text(model.nameHint)
                }
                Section {
                    ForEach(model.rules, id: \.self) { Text($0) }
                    Toggle(model.agreementText, isOn: $model.isRulesAgreed).disabled(model.isEdit)
                } header: {
                    Text("The rules")
                } footer: {
                    Text(model.rulesEnd)
                }
                Button(model.buttonText) { model.submit() }.disabled(!model.canContinue)
                if model.isEdit { Button("Cancel", role: .cancel) { model.cancel() } }
            }
            .navigationTitle(model.title)
        }
    }
}

/// Asks the user for the permissions to use the camera and the microphone.
struct PermissionsView: View {
    let model: PermissionsModel

    var body: some View {
        VStack(spacing: 16) {
            Text("Camera and microphone").font(.title2).accessibilityAddTraits(.isHeader)
            ModelText(model.statusText).multilineTextAlignment(.center)
            if model.isUndecided { Button("Allow") { model.ask() }.buttonStyle(.borderedProminent) }
            // Set a style, because a button without one reacts to taps anywhere in its row of a form.
            if model.offersSettings { SettingsButton().buttonStyle(.bordered) }
            Button(model.continueText) { model.proceed() }.buttonStyle(.bordered)
        }
        .disabled(model.isAsking)
        .padding()
    }
}
